package site_test

import (
	"fmt"
	"net/http"

	"github.com/followpress/followpress/site"
)

// Resolve determines the response to a request without reading a site. Most requests have one object that answers.
func ExampleConfig_Resolve() {
	config, err := site.Config{}.WithDefaults()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, query := range []string{"", "limit=3", "limit=none"} {
		r := config.Resolve(http.MethodGet, "/api/v1/leaderboard/followers", query)
		if r.Action == site.AnswerProblem {
			fmt.Println(r.Problem.Status, r.Problem.Key())
			continue
		}
		fmt.Println(http.StatusOK, r.Key)
	}
	// Output:
	// 200 api/v1/leaderboard/followers
	// 200 _variants/leaderboard/followers/limit=3
	// 400 _errors/bad-limit
}

// Diff compares two shards of a manifest. That is all it takes to plan a publish.
func ExampleDiff() {
	entry := func(key site.Key, body string) site.Entry {
		return site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum([]byte(body))}
	}
	live := []site.Entry{entry("a", "old"), entry("b", "same"), entry("c", "left out next time")}
	next := []site.Entry{entry("a", "new"), entry("b", "same"), entry("d", "new")}
	for _, change := range site.Diff(live, next) {
		fmt.Println(change.Key, change.Reason)
	}
	// Output:
	// a altered
	// c gone
	// d added
}

// Both an address and a name come back in the form that keys have.
func ExampleParseUser() {
	for _, text := range []string{"0x974B780C0CFB5343CBB4A44384CF9A10F80EB9CD", "MiraLund.eth", "a/b"} {
		if user, isAddress, ok := site.ParseUser(text); ok {
			fmt.Println(user, isAddress)
		} else {
			fmt.Println("neither")
		}
	}
	// Output:
	// 0x974b780c0cfb5343cbb4a44384cf9a10f80eb9cd true
	// miralund.eth false
	// neither
}
