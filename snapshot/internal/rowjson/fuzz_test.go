package rowjson

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/followpress/followpress/site"
)

// FuzzRecord: a written record is read back unchanged.
func FuzzRecord(f *testing.F) {
	f.Add("1", uint32(1), "address", make([]byte, 20), "top8", "block", int64(1_700_000_000_001))
	f.Add("0", uint32(math.MaxUint32), "2", []byte{}, "\u2028\\\"", "é\x00", int64(NoTime))
	f.Add("12", uint32(0), "\xff", []byte{1}, "\xed\xa0\x80", "", int64(-62_167_219_200_000))
	f.Fuzz(func(t *testing.T, token string, version uint32, kind string, data []byte, tagA, tagB string, added int64) {
		in := Record{TokenID: token, Version: version, Type: kind, Data: data, Tags: []string{tagA, tagB}, Added: added}
		line, err := AppendRecord(nil, in)
		if err != nil {
			return
		}
		in.Tags = slices.Compact(slices.Sorted(slices.Values(in.Tags)))
		if got, err := ParseTimedRecord(line); err != nil || !reflect.DeepEqual(got, in) {
			t.Errorf("%s: got %+v and the error %v, want %+v", line, got, err, in)
		}
	})
}

// FuzzAccount: a written account is read back unchanged, whatever its profile holds.
func FuzzAccount(f *testing.F) {
	f.Add("12", "a.eth", `{"b":[1.50, null], "a":{"c":"\ud83e\udd8a"}}`, `{}`, int64(5))
	f.Add("", "\u2028", ` null `, `{"a":1}}`, int64(math.MinInt64))
	f.Add("1", "", `{"a":"\ud800"}`, `{"a":1},"x":{}`, int64(0))
	f.Fuzz(func(t *testing.T, primary, name, records, chains string, fresh int64) {
		profile := site.Profile{Name: name, Records: []byte(records), Chains: []byte(chains), Fresh: fresh}
		line, err := AppendAccount(nil, Account{Primary: primary, ENS: &profile})
		if err != nil {
			return
		}
		normal, err := profile.Normalize()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		normal.NoTexts = 0 // written rows have none
		want := Account{Primary: primary, ENS: &normal}
		if got, err := ParseAccount(line); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v and the error %v, want %+v", line, got, err, want)
		}
	})
}
