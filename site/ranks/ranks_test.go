package ranks_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/ranks"
)

func encodeRanks(all map[site.Address]ranks.Counts) []byte {
	return ranks.Encode("2026-11-20T00:00:00Z", func(yield func(site.Address, ranks.Counts) bool) {
		for _, address := range slices.SortedFunc(maps.Keys(all), site.Address.Compare) {
			if !yield(address, all[address]) {
				return
			}
		}
	})
}

// TestRoundTrip: encoded counts are decoded again, except accounts without counts, and equal rows have only one valid
// encoding.
func TestRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		all := map[site.Address]ranks.Counts{}
		var address site.Address
		for range random.IntN(40) {
			for i := range address { // some have much in common
				if random.IntN(3) == 0 {
					address[i] = byte(random.IntN(2) * random.IntN(256))
				}
			}
			var counts ranks.Counts
			for m := range counts {
				counts[m] = []uint32{0, 0, 1, 127, 128, 70_000, math.MaxUint32}[random.IntN(7)]
			}
			all[address] = counts
		}
		body := encodeRanks(all)
		held, err := ranks.Parse(body)
		if err != nil {
			t.Fatalf("Parse(%q): %v", body, err)
		}
		maps.DeleteFunc(all, func(_ site.Address, c ranks.Counts) bool { return c == ranks.Counts{} })
		if got := maps.Collect(held.All()); !maps.Equal(got, all) {
			t.Fatalf("got %v, want %v", got, all)
		}
		if !bytes.Equal(encodeRanks(all), body) || held.AsOf != "2026-11-20T00:00:00Z" {
			t.Fatalf("the same rows gave different bytes, or the time %s", held.AsOf)
		}
	}
}

// TestSmall: an account takes its address and little more.
func TestSmall(t *testing.T) {
	const accounts = 100_000
	random := rand.New(rand.NewPCG(1, 2))
	all := map[site.Address]ranks.Counts{}
	for range accounts {
		var address site.Address
		binary.BigEndian.PutUint64(address[:], random.Uint64())
		binary.BigEndian.PutUint64(address[8:], random.Uint64())
		all[address] = ranks.Counts{uint32(random.IntN(3)), uint32(random.IntN(200)), uint32(random.IntN(200))}
	}
	if n := len(encodeRanks(all)) / accounts; n > 22 {
		t.Errorf("got %d bytes an account, want 22 at most", n)
	}
}

// signed returns an object with the right digest.
func signed(text []byte) []byte {
	sum := sha256.Sum256(text)
	return append(bytes.Clone(text), sum[:]...)
}

// TestParseRefuses: truncated, altered and non-canonical objects are rejected, even with the right digest.
func TestParseRefuses(t *testing.T) {
	a, b := site.Address{1, 2}, site.Address{1, 3}
	good := encodeRanks(map[site.Address]ranks.Counts{a: {1}, b: {0, 300}})
	refuse := func(name string, body []byte, reason string) {
		t.Helper()
		held, err := ranks.Parse(body)
		if !errors.Is(err, site.ErrMalformed) || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), "_ranks") {
			t.Errorf("%s: got %v, %v, want an error with %q", name, held, err, reason)
		}
	}
	for n := range good {
		refuse(fmt.Sprintf("the first %d bytes", n), good[:n], "")
		altered := bytes.Clone(good)
		altered[n] ^= 1
		refuse(fmt.Sprintf("byte %d altered", n), altered, "")
	}
	head := func(n int) []byte {
		return fmt.Appendf(nil, `{"format":1,"as_of":"2026-11-20T00:00:00Z","accounts":%d}`+"\n", n)
	}
	rest := func(address site.Address, from int) string { return string(address[from:]) }
	for name, of := range map[string]struct {
		text   string
		reason string
	}{
		"another format":           {strings.Replace(string(head(0)), `:1`, `:2`, 1), "format 2"},
		"no time":                  {strings.Replace(string(head(0)), `2026`, `now`, 1), "as_of"},
		"no JSON":                  {"ranks\n", "first line"},
		"a row too few":            {string(head(1)), "0 rows instead of 1"},
		"a row without a measure":  {string(head(1)) + "\x00" + rest(a, 0), "row 0"},
		"a cut address":            {string(head(1)) + "\x01abc", "row 0"},
		"no count":                 {string(head(1)) + "\x01" + rest(a, 0), "row 0"},
		"a count of 0":             {string(head(1)) + "\x01" + rest(a, 0) + "\x00", "row 0"},
		"a long form of a count":   {string(head(1)) + "\x01" + rest(a, 0) + "\x81\x00", "row 0"},
		"a count of more bits":     {string(head(1)) + "\x01" + rest(a, 0) + "\x80\x80\x80\x80\x10", "row 0"},
		"a shared part of nothing": {string(head(1)) + "\x21" + rest(a, 1) + "\x01", "row 0"},
		"an address twice":         {string(head(2)) + "\x01" + rest(a, 0) + "\x01" + "\x21" + rest(a, 1) + "\x01", "row 1"},
		"addresses backwards":      {string(head(2)) + "\x01" + rest(b, 0) + "\x01" + "\x21" + rest(a, 1) + "\x01", "row 1"},
		"too little shared":        {string(head(2)) + "\x01" + rest(a, 0) + "\x01" + "\x01" + rest(b, 0) + "\x01", "row 1"},
	} {
		refuse(name, signed([]byte(of.text)), of.reason)
	}
	if _, err := ranks.Parse(signed([]byte(string(head(2)) + "\x01" + rest(a, 0) + "\x01" + "\x21" + rest(b, 1) + "\x01"))); err != nil {
		t.Errorf("a valid one: %v", err)
	}
}

// TestDue: ranks are due after the configured time, and for an older snapshot.
func TestDue(t *testing.T) {
	held, err := ranks.Parse(encodeRanks(nil))
	if err != nil {
		t.Fatal(err)
	}
	c := site.Config{RanksEvery: 3600}
	for asOf, want := range map[string]bool{
		"2026-11-20T00:00:00Z": false, "2026-11-20T00:59:59.999Z": false, "2026-11-20T01:00:00Z": true, "2026-11-20T01:30:00+01:00": false,
		"2026-11-19T23:59:59Z": true,
	} {
		if due, err := held.AreDue(c, asOf); err != nil || due != want {
			t.Errorf("%s: got %t, %v, want %t", asOf, due, err, want)
		}
	}
	if _, err := held.AreDue(c, "now"); err == nil {
		t.Error("got no error for a snapshot without a time")
	}
}

// The error for a newer format names the remedy.
func TestNewerFormat(t *testing.T) {
	body := bytes.Replace(encodeRanks(nil), []byte(`"format":1`), []byte(`"format":99`), 1)
	if _, err := ranks.Parse(body); err == nil || !strings.Contains(err.Error(), "format 99") || !strings.Contains(err.Error(), "update followpress") {
		t.Errorf("got %v, want an error that says to update", err)
	}
}
