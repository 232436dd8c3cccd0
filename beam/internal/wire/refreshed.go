package wire

import (
	"encoding/binary"

	"github.com/followpress/followpress/site"
)

// A Refreshed is a decoded object of the refreshed data: a newer profile, or newer badges.
type Refreshed struct {
	Number  uint64 // in the order of keys, from 1
	Token   string // token ID of the list that it was fetched for
	IsAbout bool   // whether it names its account
	About   site.Address
	Badges  bool
	Profile                 // unless it has badges
	NoTexts int             // omitted entries of the profile, as counted by site.Profile
	Long    []site.LongText // omitted texts of the profile
	Fetched int64           // when the badges were fetched, in milliseconds since the Unix epoch
	Held    []BadgeRow      // badges of known events; without a token ID, the account does not have the badge
}

// Append appends the encoding.
func (r *Refreshed) Append(b []byte) []byte {
	b = AppendText(binary.AppendUvarint(b, r.Number), r.Token)
	b = append(AppendBool(b, r.IsAbout), r.About[:]...)
	b = AppendBool(b, r.Badges)
	if !r.Badges {
		b = binary.AppendUvarint(r.Profile.Append(b), uint64(r.NoTexts))
		for _, text := range r.Long {
			b = binary.AppendUvarint(AppendText(b, text.Member), uint64(text.Bytes))
		}
		return b
	}
	b = binary.AppendVarint(b, r.Fetched)
	for _, row := range r.Held {
		b = row.Append(b)
	}
	return b
}

// Refreshed decodes a Refreshed, and with it all the rest.
func (d *Decoder) Refreshed() (r Refreshed) {
	r.Number, r.Token, r.IsAbout, r.About, r.Badges = d.Uvarint(), d.Text(), d.Bool(), d.Address(), d.Bool()
	if !r.Badges {
		r.Profile, r.NoTexts = d.Profile(), int(d.Uvarint())
		for d.More() {
			r.Long = append(r.Long, site.LongText{Member: d.Text(), Bytes: int(d.Uvarint())})
		}
		return r
	}
	r.Fetched = d.Varint()
	for d.More() {
		r.Held = append(r.Held, d.BadgeRow())
	}
	return r
}
