package rowjson

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

// sameAsDecoder fails the test if a scanner accepts a row that the decoder rejects or decodes differently. It returns
// the number of scanners that accepted the row.
func sameAsDecoder(t testing.TB, line string) (taken int) {
	t.Helper()
	s := TakeScanner()
	defer s.GiveBack()
	compare := func(what string, got any, err error, want any) {
		taken++
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s %q: scanned\n%+v, decoded\n%+v and the error %v", what, line, got, want, err)
		}
	}
	for _, timed := range []bool{false, true} {
		if r, ok := s.ScanRecord([]byte(line), timed); ok {
			want, err := DecodeRecord([]byte(line), timed)
			compare("record", r.clone(), err, want)
		}
	}
	if a, ok := s.ScanAccount([]byte(line)); ok {
		want, err := DecodeAccount([]byte(line))
		compare("account", a.clone(), err, want)
	}
	return taken
}

const someAddress = "0x420A29c4234e7236be10cfa39760d52b850eb1c1"

// usualRows are rows as programs write them, which need no decoder.
var usualRows = []string{
	`{"token_id":"1","version":1,"record_type":"address","data":"` + someAddress + `"}`,
	`{"token_id":"1","version":4294967295,"record_type":"2","data":"0x00fF","tags":["top8","block","top8","é"],"added":"2026-01-31T00:00:00Z"}`,
	`{ "data" : "0x" , "tags" : [ ] , "version" : 0 , "added" : null , "record_type" : "é" ,"token_id" : "0" }`,
	`{"token_id":"1","version":1,"record_type":"address","data":"0x","tags":null,"added":"2026-01-31T00:00:00.1239Z"}`,
	`{"address":"` + someAddress + `"}`,
	`{"address":"` + someAddress + `","primary_list":null,"ens":null}`,
	`{"address":"` + someAddress + `","primary_list":"7","ens":{}}`,
	`{"address":"` + someAddress + `","ens":{"name":"é.eth","avatar":"a","header":"h","display":"d","records":{"a":"\"\\\b\f\n\r\t é","b":null},"chains":{},"fresh":-7,"resolver":"r","errors":null}}`,
	`{"address":"` + someAddress + `","ens":{"fresh":0,"records":{"description":"x","avatar":"y","com.twitter":"z"},"chains":{"60":"0x","0":null,"a":null}}}`,
	`{"address":"` + someAddress + `","ens":{"records":{ "b" : null , "a" : "x" }, "fresh":1726680254493}}`,
}

// unusualRows differ slightly from usual rows, valid or not.
var unusualRows = []string{
	`{"Token_ID":"1","version":1,"record_type":"address","data":"0x"}`,
	`{"token_id":"1","token_id":"2","version":1,"record_type":"address","data":"0x"}`,
	`{"token_id":"1","version":1,"record_type":"address","data":"0x","tags":["\u0061"]}`,
	`{"token_id":"1","version":1,"record_type":"address","data":"0x","tags":[null]}`,
	`{"token_id":"1","version":1,"record_type":"address","data":"0x","tags":["a",]}`,
	`{"token_id":"1","version":1,"record_type":"address","data":"0x",}`,
	`{"token_id":"1","version":1,"record_type":"address","data":"0x"}}`,
	`{"token_id":"1","version":1,"record_type":"address","data":"0x"} 1`,
	`{"token_id":"1","version":01,"record_type":"address","data":"0x"}`,
	`{"token_id":"1","version":-0,"record_type":"address","data":"0x"}`,
	`{"token_id":"1","version":4294967296,"record_type":"address","data":"0x"}`,
	`{"token_id":"1","version":1e0,"record_type":"address","data":"0x"}`,
	`{"token_id":"01","version":1,"record_type":"address","data":"0x"}`,
	`{"token_id":"1","version":1,"record_type":"address","data":"0x0"}`,
	`{"token_id":"1","version":1,"record_type":"` + "\xff" + `","data":"0x"}`,
	`{"token_id":"1","version":1,"record_type":"a` + "\n" + `","data":"0x"}`,
	`{"token_id":"1","version":1,"record_type":"address","data":"0x","added":7}`,
	`{"token_id":"1","version":1,"record_type":"address","data":"0x","added":"yesterday"}`,
	`{"token_id":"1","version":1,"record_type":"address","data":"0x","more":{}}`,
	`{"address":"` + someAddress + `","ens":{"records":{"a":"1","a":"2"}}}`,
	`{"address":"` + someAddress + `","ens":{"records":{"a":"1","b":"2","a":null}}}`,
	`{"address":"` + someAddress + `","ens":{"records":{"a":null,"b":"2","a":"1"}}}`,
	`{"address":"` + someAddress + `","ens":{"records":{"a":"1","b":1.50,"c":[true],"d":{"e":"f"}}}}`,
	`{"address":"` + someAddress + `","ens":{"records":{"\u0061":1}}}`,
	`{"address":"` + someAddress + `","ens":{"records":{"a":"\u00e9\/\u2028` + "\u2028" + `"}}}`,
	`{"address":"` + someAddress + `","ens":{"records":{"a":1e5,"b":-0,"c":01}}}`,
	`{"address":"` + someAddress + `","ens":{"records":[]}}`,
	`{"address":"` + someAddress + `","ens":{"records":{"a":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}}}`,
	`{"address":"` + someAddress + `","ens":{"name":"\n"}}`,
	`{"address":"` + someAddress + `","ens":"x"}`,
	`{"address":null}`, `{}`, `[]`, `null`, ``, `{`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"address":"`,
}

// TestLineEndsInNames: names of members become the same whether the rest of the row needs the decoder.
func TestLineEndsInNames(t *testing.T) {
	for _, name := range []string{"a\u2028", "\u2029"} {
		var records []string
		for _, text := range []string{`x`, `\u0078`} {
			a, err := DecodeAccount([]byte(`{"address":"` + someAddress + `","ens":{"records":{"` + name + `":"` + text + `"}}}`))
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, string(a.ENS.Records))
		}
		if records[0] != records[1] {
			t.Errorf("got %+q, with an escape %+q", records[0], records[1])
		}
	}
}

// TestScannedAsDecoded: usual rows need no decoder, and scanners give the same results as the decoder, also for
// damaged rows.
func TestScannedAsDecoded(t *testing.T) {
	for _, line := range usualRows {
		if sameAsDecoder(t, line) == 0 {
			t.Errorf("%s: the scanner rejects it", line)
		}
	}
	for _, line := range unusualRows {
		sameAsDecoder(t, line)
	}
	r := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 20_000 {
		taken += sameAsDecoder(t, damaged(r, usualRows[r.IntN(len(usualRows))]))
	}
	if taken < 1000 {
		t.Errorf("scanners took %d damaged rows, want many", taken)
	}
}

// damaged changes a few bytes of a row.
func damaged(r *rand.Rand, line string) string {
	const bytes = "\"\\{}[]:,. 0123456789-+eEnulltrfasx\x00\x1f\x7f\x80é\u2028/"
	b := []byte(line)
	for range 1 + r.IntN(3) {
		at := r.IntN(len(b))
		switch r.IntN(4) {
		case 0:
			b[at] = bytes[r.IntN(len(bytes))]
		case 1:
			b = append(b[:at], b[at+1:]...)
		case 2:
			b = append(b[:at], append([]byte{bytes[r.IntN(len(bytes))]}, b[at:]...)...)
		default:
			to := min(len(b), at+r.IntN(20))
			b = append(b[:to], append([]byte(string(b[at:to])), b[to:]...)...)
		}
		if len(b) == 0 {
			break
		}
	}
	return string(b)
}

// FuzzScan: the scanner's result equals the decoder's, for every input that the scanner accepts.
func FuzzScan(f *testing.F) {
	for _, line := range append(usualRows, unusualRows...) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) { sameAsDecoder(t, line) })
}

// TestScanWithoutAllocation: memory for a row is only needed by what the caller makes of it.
func TestScanWithoutAllocation(t *testing.T) {
	s := TakeScanner()
	defer s.GiveBack()
	for _, line := range usualRows[:4] {
		b := []byte(line)
		s.ScanRecord(b, true) // the first one makes the memory
		if n := testing.AllocsPerRun(100, func() { s.ScanRecord(b, true) }); n > 0 {
			t.Errorf("%s: %.0f allocations, want none", line, n)
		}
	}
	for _, line := range usualRows[7:] {
		b := []byte(line)
		s.ScanAccount(b)
		if n := testing.AllocsPerRun(100, func() { s.ScanAccount(b) }); n > 0 {
			t.Errorf("%s: %.0f allocations, want none", line, n)
		}
	}
}

// TestParsedRowsOwnTheirMemory overwrites the line after it was parsed.
func TestParsedRowsOwnTheirMemory(t *testing.T) {
	for _, line := range usualRows {
		b := []byte(line)
		record, _ := ParseTimedRecord(b)
		list, _ := ParseList(b)
		account, _ := ParseAccount(b)
		text := func() string { return fmt.Sprintf("%+v %+v %+v %+v", record, list, account, account.ENS) }
		before := text()
		for i := range b {
			b[i] = 'x'
		}
		for _, other := range usualRows {
			_, _ = ParseTimedRecord([]byte(other))
			_, _ = ParseAccount([]byte(other))
		}
		if text() != before {
			t.Errorf("%s: got %s after other rows, want %s", line, text(), before)
		}
	}
}

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
