package history

import (
	"encoding/xml"
	"fmt"
	"strings"
	"time"

	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/site/scan"
)

// These are the elements of a feed's entries and head (RFC 4287). encoding/xml escapes all strings
// and replaces characters invalid in XML with U+FFFD. The head and each entry are encoded
// separately, so that their memory is counted and a feed that grows too large for a page ends
// early.
type (
	feedEntry struct {
		ID      string     `xml:"id"`
		Title   string     `xml:"title"`
		Updated string     `xml:"updated"`
		Author  feedPerson `xml:"author"`
		Link    feedLink   `xml:"link"`
	}
	feedPerson struct {
		Name string `xml:"name"`
		URI  string `xml:"uri"`
	}
	feedLink struct {
		Rel  string `xml:"rel,attr"`
		Type string `xml:"type,attr,omitempty"`
		Href string `xml:"href,attr"`
	}
)

const (
	feedStart = xml.Header + `<feed xmlns="http://www.w3.org/2005/Atom">`
	feedEnd   = `</feed>`

	// feedTag starts all IDs (RFC 4151). It names this program, not the host that serves the site,
	// so IDs never change.
	feedTag = "tag:github.com,2026:followpress/"

	feedName    = "notifications.atom" // last segment of the path
	contentFeed = "application/atom+xml"
	feedTime    = "2006-01-02T15:04:05.000Z07:00"
)

// Feed answers with the notifications as an Atom feed.
func Feed(a *compute.Answer) error {
	address, selected, err := notified(a)
	if err != nil {
		return err
	}
	updated := a.AsOf()
	if selected.Len() > 0 {
		newest, err := scan.ParseNotificationRow(selected.At(0))
		if err != nil {
			return err
		}
		updated = time.UnixMilli(newest.Time).UTC()
	}
	if err := a.AddText(feedStart); err != nil {
		return err
	}
	encoder := xml.NewEncoder(a)
	add := func(name string, value any) error {
		return encoder.EncodeElement(value, xml.StartElement{Name: xml.Name{Local: name}})
	}
	for _, head := range []struct {
		name  string
		value any
	}{
		{"id", feedTag + "notifications/" + address},
		{"title", "Notifications of " + a.Ask.User},
		{"updated", updated.Format(feedTime)},
		{"author", feedPerson{a.Ask.User, webAddress(a, address)}},
		{"link", feedLink{"self", contentFeed, selfLink(a)}},
		{"link", feedLink{"alternate", "text/html", webAddress(a, address)}},
	} {
		if err := add(head.name, head.value); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for i := range selected.Len() {
		r, err := scan.ParseNotificationRow(selected.At(i))
		if err != nil {
			return err
		}
		e := entryOf(a, address, &r)
		if seen[e.ID] { // an operation done, undone and done again in one block is one entry
			continue
		}
		if err := a.Take(len(e.ID) + compute.SetEntryBytes); err != nil {
			return err
		}
		seen[e.ID] = true
		if i > 0 && a.PageEnds(len(selected.At(i))) {
			break
		}
		if err := add("entry", e); err != nil {
			return err
		}
	}
	return a.AddText(feedEnd)
}

// entryOf returns the entry for an operation on an address. Operations have no numbers, so the ID
// is made of the operation's fields.
func entryOf(a *compute.Answer, address string, r *scan.OperationRow) feedEntry {
	tag, by := scan.Text(r.Tag), string(scan.Text(r.Name))
	if by == "" {
		by = string(r.Address)
	}
	did := ""
	switch op.Code(r.Opcode) {
	case op.Follow:
		did = "follows you"
	case op.Unfollow:
		did = "no longer follows you"
	case op.Tag:
		did = fmt.Sprintf("tagged you “%s”", tag)
	case op.Untag:
		did = fmt.Sprintf("took the tag “%s” from you", tag)
	}
	web := webAddress(a, string(r.Address))
	return feedEntry{
		ID:      fmt.Sprintf("%soperation/%s/%s/%d/%d/%x", feedTag, address, r.List, r.Time, r.Opcode, tag),
		Title:   by + " " + did,
		Updated: time.UnixMilli(r.Time).UTC().Format(feedTime),
		Author:  feedPerson{by, web},
		Link:    feedLink{"alternate", "text/html", web},
	}
}

// webAddress returns the URL of an account's page. It percent-encodes characters that a URI must
// not contain (RFC 3986, section 2): the template may contain anything that browsers accept.
func webAddress(a *compute.Answer, address string) string {
	const others = "-._~:/?#[]@!$&'()*+,;=%"
	var b strings.Builder
	for _, octet := range []byte(a.Root.Config.ProfilePage(address)) {
		if 'a' <= octet && octet <= 'z' || 'A' <= octet && octet <= 'Z' || '0' <= octet && octet <= '9' || strings.IndexByte(others, octet) >= 0 {
			b.WriteByte(octet)
		} else {
			fmt.Fprintf(&b, "%%%02X", octet)
		}
	}
	return b.String()
}

// selfLink returns a relative link from the feed to itself, valid on any host.
func selfLink(a *compute.Answer) string {
	if a.Query == "" {
		return feedName
	}
	return feedName + "?" + a.Query
}
