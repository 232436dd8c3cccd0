package guard

import (
	"math"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

func percent(t testing.TB, text string) *Percent {
	t.Helper()
	var p Percent
	if err := p.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return &p
}

func TestPercent(t *testing.T) {
	for text, want := range map[string]Percent{"0%": 0, "5%": 50_000, "05%": 50_000, "0.5%": 5_000, "0.0001%": 1, "99.9999%": 999_999, "100%": hundred, "100.0%": hundred} {
		if got := percent(t, text); *got != want {
			t.Errorf("%s: got %d, want %d", text, *got, want)
		}
	}
	for _, text := range []string{"", "5", "%", "-1%", "+5%", "100.0001%", "101%", "1000%", ".5%", "5.%", "0.00001%", "5 %", " 5%", "5%%", "1e1%", "NaN%", "٥%", "0x5%", "5%\n"} {
		if err := new(Percent).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for a percentage", text)
		}
	}
	for text, shown := range map[string]string{"5%": "5%", "0.5000%": "0.5%", "100%": "100%", "0%": "0%", "12.3456%": "12.3456%"} {
		if got := percent(t, text).String(); got != shown {
			t.Errorf("%s is shown as %s", text, got)
		}
	}
}

// A site may lose exactly the given share of each count.
func TestCheckLoss(t *testing.T) {
	lists := func(n int) site.Counts { return site.Counts{Lists: n} }
	for _, c := range []struct {
		name, most string
		live, next site.Counts
		says       string // "" if the site may be published
	}{
		{"as much", "0%", lists(140), lists(140), ""},
		{"more", "0%", lists(140), lists(141), ""},
		{"one less", "0%", lists(140), lists(139), "139 lists instead of 140"},
		{"at the limit", "5%", lists(100), lists(95), ""},
		{"beyond it", "5%", lists(100), lists(94), "94 lists instead of 100"},
		{"a fraction at the limit", "0.1%", lists(1000), lists(999), ""},
		{"a fraction beyond it", "0.1%", lists(999), lists(998), "998 lists instead of 999"},
		{"nothing left", "99.9999%", lists(1), lists(0), "0 lists instead of 1"},
		{"anything", "100%", lists(1000), lists(0), ""},
		{"names", "5%", site.Counts{Lists: 9, Names: 1150}, site.Counts{Lists: 9, Names: 150}, "150 names instead of 1150"},
		{"follows", "5%", site.Counts{Lists: 140, Follows: 1547}, site.Counts{Lists: 140, Follows: 208}, "208 follows instead of 1547"},
		{"primary lists", "5%", site.Counts{Primary: 100}, site.Counts{}, "0 primary lists instead of 100"},
		{"several", "5%", site.Counts{Lists: 140, Follows: 50, Names: 20}, site.Counts{Lists: 44, Follows: 50, Names: 1},
			"44 lists instead of 140, 1 names instead of 20"},
		{"more of one, less of another", "5%", site.Counts{Lists: 10, Follows: 100}, site.Counts{Lists: 20, Follows: 10}, "10 follows"},
		{"an old root without a number", "0%", lists(10), site.Counts{Lists: 10, Follows: 5, Names: 3}, ""},
		{"a new root without a number", "5%", site.Counts{Lists: 10, Names: 3}, lists(10), "0 names instead of 3"},
		{"counts that are not guarded", "0%", site.Counts{Lists: 1, Events: 9, Objects: 99, Bytes: 999}, lists(1), ""},
		{"nonsense in the bucket", "0%", site.Counts{Lists: -5, Follows: math.MinInt}, site.Counts{}, ""},
		{"as much as fits", "5%", lists(math.MaxInt), lists(math.MaxInt / 2), "lists instead of"},
		{"as much as fits, within the limit", "50.0001%", lists(math.MaxInt), lists(math.MaxInt / 2), ""},
	} {
		err := percent(t, c.most).checkLoss(c.live, c.next)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "--max-loss 100%")) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}
