package render

import (
	"encoding/json"
	"testing"

	"github.com/followpress/followpress/site"
)

// The explorer's objects have exactly these texts: scripts read them, and no compiler checks their
// types.
func TestObjectsOfTheExplorer(t *testing.T) {
	const alice = "0xabcdefabcdefabcdefabcdefabcdefabcdefabcd"
	address, err := site.ParseAddress(alice)
	if err != nil {
		t.Fatal(err)
	}
	top := topObject{Total: 3, Accounts: []topAccount{
		{Address: address, Name: []byte(`"a\"b.eth"`), Followers: 12, List: "7", Avatar: []byte(`"https://x.example/<1>"`)},
		{Name: []byte(`""`), Followers: 1, Avatar: []byte(`""`)},
	}}
	network := Network{
		AsOf:      "2026-01-02T03:04:05Z",
		Counts:    site.Counts{Accounts: 1, Lists: 2, Primary: 3, Records: 4, Follows: 5, Names: 6, Events: 7, Objects: 8, Bytes: 9},
		Followers: []DegreeCount{{1, 20}, {3, 1}},
		Following: []DegreeCount{{2, 4}},
		Tags:      []LabelledCount{{"top8", 3}, {`a"<é`, 1}},
		Growth:    []LabelledCount{{"2026-01", 2}},
	}
	for name, tc := range map[string]struct{ got, want string }{
		"top": {string(top.Append(nil)), `{"total":3,"accounts":[["` + alice + `","a\"b.eth",12,"7","https://x.example/<1>"],` +
			`["0x0000000000000000000000000000000000000000","",1,"",""]]}`},
		"no accounts": {string(topObject{}.Append(nil)), `{"total":0,"accounts":[]}`},
		"network": {string(network.Append(nil)), `{"as_of":"2026-01-02T03:04:05Z","accounts":1,"lists":2,"primary_lists":3,"records":4,"follows":5,"names":6,` +
			`"followers":[[1,20],[3,1]],"following":[[2,4]],"tags":[["top8",3],["a\"<é",1]],"growth":[["2026-01",2]]}`},
		"no graph": {string(Network{}.Append(nil)), `{"as_of":"","accounts":0,"lists":0,"primary_lists":0,"records":0,"follows":0,"names":0,` +
			`"followers":[],"following":[],"tags":[],"growth":[]}`},
	} {
		if tc.got != tc.want || !json.Valid([]byte(tc.got)) {
			t.Errorf("%s: got %s, want %s", name, tc.got, tc.want)
		}
	}
}
