package preview

import (
	"context"
	"errors"
	"fmt"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/storage"
)

// A sample has values that the site has answers for, for the start page.
type sample struct {
	TokenID string // the list that follows the most accounts
	Address string // the account of that list, in lower case
	Name    string // the name of that account; "" if it cannot be looked up
	Term    string // a search term that matches an entry of the list; "" if no entry has a name
	Other   string // the address of an account that the list follows; "" if there is none
	Sharded bool   // the list is certainly long enough to have search shards

	// Listless is the address of an account near the top of the list that has no primary list
	// itself. It is "" if there is none, and under APISpec, which has no answers about such
	// accounts.
	Listless string
}

// findSample takes examples from the top of the following leaderboard. For a site without lists
// it returns the zero value. It fails if the store does or if an object is malformed.
func findSample(ctx context.Context, store server.Store, root *site.Root) (sample, error) {
	var x sample
	var board []struct{ Address string }
	if err := getJSON(ctx, store, root.Config.LeaderboardKey(site.Following), &board); err != nil || len(board) == 0 {
		return x, err
	}
	x.Address = board[0].Address
	var err error
	if x.TokenID, err = primaryList(ctx, store, root, x.Address); err != nil {
		return x, err
	}
	var details site.ListDetails
	if err := getJSON(ctx, store, root.Config.ListKey(x.TokenID, site.Details), &details); err != nil {
		return x, err
	}
	if site.LookupName(details.ENS.Name) {
		x.Name = details.ENS.Name
	}
	var page struct {
		Following []struct {
			Data string
			ENS  struct{ Name string }
		}
	}
	if err := getJSON(ctx, store, root.Config.ListKey(x.TokenID, site.SearchFollowing), &page); err != nil {
		return x, err
	}
	// Under APIEFP shards start at a longer list than one page shows.
	x.Sharded = len(page.Following) == site.DefaultLimit && !root.Config.EFP()
	if len(page.Following) > 0 {
		x.Other = page.Following[0].Data
	}
	for _, entry := range page.Following {
		if name := []rune(entry.ENS.Name); x.Term == "" && len(name) >= 3 {
			x.Term = string(name[:3])
		}
		if x.Listless != "" || !root.Config.EFP() {
			continue
		}
		switch primary, err := primaryList(ctx, store, root, entry.Data); {
		case errors.Is(err, storage.ErrNotFound): // a new site is being published
		case err != nil:
			return x, err
		case primary == "":
			x.Listless = entry.Data
		}
	}
	return x, nil
}

// primaryList returns the token ID of the account's primary list.
func primaryList(ctx context.Context, store server.Store, root *site.Root, address string) (tokenID string, err error) {
	if root.Config.EFP() {
		var lists struct {
			Primary string `json:"primary_list"`
		}
		err = getJSON(ctx, store, root.Config.UserObjectKey(address, site.Lists), &lists)
		return lists.Primary, err
	}
	bucket, err := store.Get(ctx, site.UserBucketKey(site.UserBucket(address, root.BucketDigits)))
	if err != nil {
		return "", fmt.Errorf("find an example: %w", err)
	}
	tokenID, _ = scan.FindUser(bucket, address)
	return tokenID, nil
}

func getJSON(ctx context.Context, store server.Store, key site.Key, into any) error {
	body, err := store.Get(ctx, key)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("find an example in %s: %w", key, err)
	}
	return nil
}
