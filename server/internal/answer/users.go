package answer

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/storage"
)

// userFile calls f with a file of the user that the path names; with nil if the graph does not know the
// address.
func (c *computation) userFile(object site.ListObject, f func(body []byte) error) error {
	user := c.ask.User
	if !isAddress(user) && c.root.Config.Names == site.NamesLookup {
		s, err := c.lookUp(user)
		if err != nil {
			return err
		}
		return c.useKnown(c.root.Config.UserObjectKey(s.address, object), f)
	}
	err := c.use(c.root.Config.UserObjectKey(user, object), f)
	switch {
	case !errors.Is(err, storage.ErrNotFound):
		return err
	case isAddress(user):
		return f(nil)
	}
	return &ProblemError{site.NoSuchName}
}

// ens answers with the name of a user.
func (c *computation) ens() error {
	return c.userFile(site.Account, func(body []byte) error {
		address := c.ask.User
		if body != nil {
			account, err := scan.ParseAccount(body)
			if err != nil {
				return err
			}
			if account.HasName() {
				return c.addEntry(true, len(body), func(b []byte) []byte {
					return append(account.AppendEntry(append(b, `{"ens":`...)), '}')
				})
			}
			address = string(account.Address)
		}
		return c.addText(`{"ens":{"name":null,"address":"` + address + `","avatar":null,"records":null,"updated_at":null}}`)
	})
}

// noStats are the counts of an address that the graph does not know.
const noStats = `{"followers_count":0,"following_count":0}`

// simpleProfile answers with name, picture and counts of a user.
func (c *computation) simpleProfile() error {
	var address string
	err := c.userFile(site.Account, func(body []byte) error {
		address = c.ask.User
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
		return c.add([]byte(`{"address":"`+address+`","display_name":`), name, []byte(`,"avatar":`), avatar)
	})
	if err != nil {
		return err
	}
	err = c.userFile(site.Stats, func(stats []byte) error {
		if stats == nil {
			stats = []byte(noStats)
		}
		return c.add([]byte(`,`), bytes.Trim(stats, "{}"))
	})
	if err != nil {
		return err
	}
	return c.add([]byte(`,"url":`), rawjson.AppendString(nil, c.profileURL(address)), []byte(`}`))
}

func (c *computation) profileURL(address string) string {
	return strings.ReplaceAll(c.root.Config.ProfileURL, site.AddressPlaceholder, address)
}

// qr answers with a picture of the address of a person's page.
func (c *computation) qr() error {
	var address string
	var err error
	if c.ask.TokenID != "" {
		var s subject
		s, err = c.lookUpList(c.ask.TokenID)
		address = s.address
	} else {
		address, err = c.addressOf(c.ask.User)
	}
	if err != nil {
		return err
	}
	picture, err := qrPicture(c.profileURL(address))
	if err != nil {
		return err
	}
	return c.add(picture)
}

// primaryList answers with the primary list of a user.
func (c *computation) primaryList() error {
	s, err := c.lookUp(c.ask.User)
	if err != nil {
		return err
	}
	return c.addText(fmt.Sprintf(`{"primary_list":%s}`, listOrNull(s.list)))
}

// listOrNull is a token ID as JSON; null for "".
func listOrNull(tokenID string) string {
	if tokenID == "" {
		return "null"
	}
	return `"` + tokenID + `"`
}
