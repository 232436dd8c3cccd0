package server

import (
	"context"
	"fmt"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// Examples are values that a site has answers for, to show on a start page.
type Examples struct {
	TokenID string // the list that follows the most accounts
	Address string // the account of that list, in lower case
	Name    string // the name of that account; "" if it cannot be looked up
	Term    string // a search term that finds an entry of the list; "" if no entry has a name
	Sharded bool   // the list is long enough to have search shards
}

// FindExamples takes examples from the top of the following leaderboard. For a site without lists
// it returns the zero value. Errors are those of the store and of malformed objects.
func FindExamples(ctx context.Context, store Store, root *site.Root) (Examples, error) {
	var x Examples
	var board []site.FollowingEntry
	if err := getJSON(ctx, store, root.Config.LeaderboardKey(site.Following), &board); err != nil || len(board) == 0 {
		return x, err
	}
	x.Address = board[0].Address
	bucket, err := store.Get(ctx, site.UserBucketKey(site.UserBucket(x.Address, root.BucketDigits)))
	if err != nil {
		return x, fmt.Errorf("find an example: %w", err)
	}
	if root.Config.EFP() {
		node, _, err := site.FindUserNode(bucket, x.Address)
		if err != nil {
			return x, fmt.Errorf("find an example: %w", err)
		}
		x.TokenID = node.List
	} else {
		x.TokenID, _ = site.FindUser(bucket, x.Address)
	}
	var details site.ListDetails
	if err := getJSON(ctx, store, root.Config.ListKey(x.TokenID, site.Details), &details); err != nil {
		return x, err
	}
	if site.LookupName(details.ENS.Name) {
		x.Name = details.ENS.Name
	}
	var page site.FollowingPage
	if err := getJSON(ctx, store, root.Config.ListKey(x.TokenID, site.SearchFollowing), &page); err != nil {
		return x, err
	}
	x.Sharded = len(page.Following) == site.DefaultLimit
	for _, entry := range page.Following {
		if name := []rune(entry.ENS.Name); len(name) >= 3 {
			x.Term = string(name[:3])
			break
		}
	}
	return x, nil
}

func getJSON(ctx context.Context, store Store, key site.Key, into any) error {
	body, err := store.Get(ctx, key)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("find an example in %s: %w", key, err)
	}
	return nil
}
