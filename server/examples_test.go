package server_test

import (
	"context"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Under the whole API the buckets of users have another form: their lists are in an object.
func TestExamplesOfTheWholeAPI(t *testing.T) {
	const (
		address, other = "0x0101010101010101010101010101010101010101", "0x0202020202020202020202020202020202020202"
		listless       = "0x0303030303030303030303030303030303030303"
	)
	files := afero.NewMemMapFs()
	for key, body := range map[string]string{
		"leaderboard/following":        `[{"rank":1,"address":"` + address + `","following_count":"1"}]`,
		"users/" + address + "/lists":  `{"primary_list":"7","lists":["3","7"]}`,
		"lists/7/details":              `{"address":"` + address + `","ens":{"name":"alice.eth"}}`,
		"lists/7/searchFollowing":      `{"following":[{"data":"` + other + `","ens":{"name":"bob.eth"}},{"data":"` + listless + `"}]}`,
		"users/" + other + "/lists":    `{"primary_list":"8","lists":["8"]}`,
		"users/" + listless + "/lists": `{"primary_list":null,"lists":["9"]}`,
	} {
		if err := afero.WriteFile(files, "api/v1/"+key, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	config, err := site.Config{API: site.APIEFP}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	got, err := server.FindExamples(context.Background(), storage.NewFolder(files), &site.Root{Config: config})
	if want := (server.Examples{TokenID: "7", Address: address, Name: "alice.eth", Term: "bob", Other: other, Listless: listless}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}
