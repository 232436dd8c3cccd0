// Package profile answers requests about one user: name, avatar, primary list.
package profile

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	qr "github.com/piglig/go-qr"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/answer/lookup"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/storage"
)

// userFile calls f with a file of the user that the path names, or with nil for an address not in
// the graph.
func userFile(a *compute.Answer, object site.ListObject, f func(body []byte) error) error {
	user := a.Ask.User
	if !lookup.IsAddress(user) && a.Root.Config.Names == site.NamesLookup {
		s, err := lookup.User(a, user)
		if err != nil {
			return err
		}
		return a.UseKnown(a.Root.Config.UserObjectKey(s.Address, object), f)
	}
	err := a.Use(a.Root.Config.UserObjectKey(user, object), f)
	switch {
	case !errors.Is(err, storage.ErrNotFound):
		return err
	case lookup.IsAddress(user):
		return f(nil)
	}
	return &compute.ProblemError{Problem: site.NoSuchName}
}

// ENS answers with the name of a user.
func ENS(a *compute.Answer) error {
	return userFile(a, site.Account, func(body []byte) error {
		address := a.Ask.User
		if body != nil {
			account, err := scan.ParseAccount(body)
			if err != nil {
				return err
			}
			if account.HasName() {
				return a.AddEntry(true, len(body), func(b []byte) []byte {
					return append(account.AppendEntry(append(b, `{"ens":`...)), '}')
				})
			}
			address = string(account.Address)
		}
		return a.AddText(`{"ens":{"name":null,"address":"` + address + `","avatar":null,"records":null,"updated_at":null}}`)
	})
}

// noStats are the counts of an address not in the graph.
const noStats = `{"followers_count":0,"following_count":0}`

// Simple answers with the name, avatar and counts of a user.
func Simple(a *compute.Answer) error {
	var address string
	err := userFile(a, site.Account, func(body []byte) error {
		address = a.Ask.User
		name, avatar := rawjson.AppendString(nil, address), []byte(`""`)
		if body != nil {
			account, err := scan.ParseAccount(body)
			if err != nil {
				return err
			}
			address, avatar = string(account.Address), account.Avatar
			if name = account.Name; !account.HasName() {
				name = rawjson.AppendString(nil, address)
			}
		}
		return a.Add([]byte(`{"address":"`+address+`","display_name":`), name, []byte(`,"avatar":`), avatar)
	})
	if err != nil {
		return err
	}
	err = userFile(a, site.Stats, func(stats []byte) error {
		if stats == nil {
			stats = []byte(noStats)
		}
		return a.Add([]byte(`,`), bytes.Trim(stats, "{}"))
	})
	if err != nil {
		return err
	}
	return a.Add([]byte(`,"url":`), rawjson.AppendString(nil, a.Root.Config.ProfilePage(address)), []byte(`}`))
}

// QR answers with a QR code of the URL of the account's page.
func QR(a *compute.Answer) error {
	var address string
	var err error
	if a.Ask.TokenID != "" {
		var s lookup.Subject
		s, err = lookup.List(a, a.Ask.TokenID)
		address = s.Address
	} else {
		address, err = lookup.Address(a, a.Ask.User)
	}
	if err != nil {
		return err
	}
	picture, err := qrPicture(a.Root.Config.ProfilePage(address))
	if err != nil {
		return err
	}
	return a.Add(picture)
}

// PrimaryList answers with the user's primary list.
func PrimaryList(a *compute.Answer) error {
	s, err := lookup.User(a, a.Ask.User)
	if err != nil {
		return err
	}
	return a.AddText(fmt.Sprintf(`{"primary_list":%s}`, lookup.ListOrNull(s.List)))
}

// Avatar answers with the URL of the user's avatar.
func Avatar(a *compute.Answer) error {
	return userFile(a, site.Account, func(body []byte) error {
		if body == nil {
			return &compute.ProblemError{Problem: site.NoAvatar}
		}
		account, err := scan.ParseAccount(body)
		if err != nil {
			return err
		}
		location, ok := redirectURL(string(scan.Text(account.Avatar)))
		if !ok {
			return &compute.ProblemError{Problem: site.NoAvatar}
		}
		return a.AddText(location)
	})
}

// quietZone is the light space around a QR code, in modules (ISO/IEC 18004, 9.1).
const quietZone = 4

// qrPicture returns text as a QR code of level M or higher: an SVG, black on white, with the quiet
// zone. Its path has one run of dark modules after the other, row by row. client/qr.js makes the
// same bytes.
func qrPicture(text string) ([]byte, error) {
	code, err := qr.EncodeBinary([]byte(text), qr.Medium)
	if err != nil {
		return nil, fmt.Errorf("make a QR code of %d bytes: %w", len(text), err)
	}
	size := code.GetSize()
	whole := strconv.Itoa(size + 2*quietZone)
	b := []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ` + whole + " " + whole + `" shape-rendering="crispEdges">` +
		`<path fill="#fff" d="M0 0h` + whole + "v" + whole + `H0z"/><path d="`)
	for y := range size {
		for x := 0; x < size; x++ {
			begin := x
			for x < size && code.GetModule(x, y) {
				x++
			}
			if x > begin {
				b = fmt.Appendf(b, "M%d %dh%dv1h-%[3]dz", begin+quietZone, y+quietZone, x-begin)
			}
		}
	}
	return append(b, `"/></svg>`...), nil
}

var webURL = regexp.MustCompile(`^(?i:https?)://[^/?#]`)

// redirectURL returns a URL from a profile as a Location header value, with bytes that URLs must
// not contain (RFC 3986) percent-encoded. ok is false if text is not an http or https URL.
func redirectURL(text string) (location string, ok bool) {
	if !webURL.MatchString(text) {
		return "", false
	}
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String(), true
}
