package note_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	xnote "golang.org/x/mod/sumdb/note"

	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
)

const name = "follow.example"

func TestOpen(t *testing.T) {
	key, unknown := testkey.New(t, name), testkey.New(t, name)
	signer, keys, stranger, strangers := key.Signer, key.Keys, unknown.Signer, unknown.Keys
	root := []byte(`{"format":2}`)
	n := note.Of(name, 7, "2026-11-24T00:00:00Z", root)
	sign := func(n note.Note, signers ...note.Signer) string {
		signed, err := note.Sign(n, signers...)
		if err != nil {
			t.Fatal(err)
		}
		return string(signed)
	}
	good := sign(n, signer)
	other := n
	other.Origin = "other.example"
	for _, tt := range []struct {
		name   string
		signed string
		keys   note.Keys
		want   error
	}{
		{"good", good, keys, nil},
		{"of two keys, of which one is known", sign(n, stranger, signer), keys, nil},
		{"of an unknown key", good, strangers, note.ErrUnsigned},
		{"with a forged second line", strings.Replace(good, name+"\n", "other.example\n", 1), keys, note.ErrForged},
		{"with a forged counter", strings.Replace(good, "\n7\n", "\n8\n", 1), keys, note.ErrForged},
		{"of another site, by the same key", sign(other, signer), keys, note.ErrUnsigned},
		{"no key", good, note.Keys{}, note.ErrUnsigned},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, by, err := tt.keys.Open([]byte(tt.signed), time.Now())
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if err == nil && (got != n || len(by) != 1 || by[0] != name) {
				t.Errorf("got %+v by %q, want %+v by %s", got, by, n, name)
			}
		})
	}
	t.Run("one bit flipped", func(t *testing.T) { // some bits of the last digit of base64 are unused
		for i := range len(good) * 8 {
			flipped := []byte(good)
			flipped[i/8] ^= 1 << (i % 8)
			if got, _, err := keys.Open(flipped, time.Now()); err == nil && got != n {
				t.Fatalf("bit %d: got %+v, want an error, or the same", i, got)
			}
		}
	})
	if err := n.Names(root); err != nil {
		t.Error(err)
	}
	if err := n.Names([]byte("{}")); !errors.Is(err, note.ErrOtherRoot) {
		t.Errorf("another root: got %v, want ErrOtherRoot", err)
	}
}

// A signed text in another format is not a note, because other readers might parse it differently.
func TestOtherTexts(t *testing.T) {
	key := testkey.New(t, name)
	n := note.Of(name, 7, "2026-11-24T00:00:00Z", []byte("{}"))
	now := time.Unix(1<<54, 0) // no counter is ahead
	for what, text := range map[string]string{
		"":                              n.Text(),
		"a zero before the counter":     strings.Replace(n.Text(), "\n7\n", "\n07\n", 1),
		"a counter of 0":                strings.Replace(n.Text(), "\n7\n", "\n0\n", 1),
		"a counter that no browser has": strings.Replace(n.Text(), "\n7\n", "\n9007199254740992\n", 1),
		"capital letters":               strings.Replace(n.Text(), n.Root.String(), strings.ToUpper(n.Root.String()), 1),
		"no time":                       strings.Replace(n.Text(), "T00:00:00Z", "", 1),
		"one line more":                 n.Text() + "more\n",
		"another kind":                  strings.Replace(n.Text(), "site 1", "site 2", 1),
	} {
		signed, err := xnote.Sign(&xnote.Note{Text: text}, key.Signer)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := key.Keys.Open(signed, now); (err == nil) != (what == "") {
			t.Errorf("with %q: got %+v and %v", what, got, err)
		}
	}
}

// Notes and announcements have a maximum size, however many signatures they have.
func TestBounds(t *testing.T) {
	key := testkey.New(t, name)
	sign := func(counter uint64) string {
		signed, err := note.Sign(note.Of(name, counter, "2026-11-24T00:00:00Z", nil), key.Signer)
		if err != nil {
			t.Fatal(err)
		}
		return string(signed)
	}
	signed := sign(7)
	unknown := func(n int) (lines string) {
		for i := range n {
			line := make([]byte, 4+64)
			line[0], line[1] = byte(i), 1
			lines += "\u2014 " + strings.Repeat("a.", 100) + "a " + base64.StdEncoding.EncodeToString(line) + "\n"
		}
		return lines
	}
	for n, want := range map[int]bool{10: true, 40: true, 60: false} {
		text := []byte(signed + unknown(n))
		if _, _, err := key.Keys.Open(text, time.Now()); (err == nil) != want || want != (len(text) <= note.MaxBytes) {
			t.Errorf("%d bytes: got %v", len(text), err)
		}
	}
	var all [][]byte
	for counter := range uint64(3 * note.MaxAnnounced) {
		all = append(all, []byte(sign(counter+1)))
	}
	if got := key.Keys.OpenAnnounced(note.Join(all...), time.Now()); len(got) != note.MaxAnnounced {
		t.Errorf("of %d that are announced: got %d, want %d", len(all), len(got), note.MaxAnnounced)
	}
}

// Sole accepts only notes with exactly the signatures of the keys.
func TestSole(t *testing.T) {
	one, two, unknown := testkey.New(t, name), testkey.New(t, name), testkey.New(t, name)
	keys, err := note.ParseKeys(one.Public, two.Public)
	if err != nil {
		t.Fatal(err)
	}
	for what, tt := range map[string]struct {
		signers []note.Signer
		want    bool
	}{
		"both":               {[]note.Signer{one.Signer, two.Signer}, true},
		"in the other order": {[]note.Signer{two.Signer, one.Signer}, true},
		"one of two":         {[]note.Signer{one.Signer}, false},
		"both and another":   {[]note.Signer{one.Signer, two.Signer, unknown.Signer}, false},
		"one and another":    {[]note.Signer{one.Signer, unknown.Signer}, false},
	} {
		signed, err := note.Sign(note.Of(name, 7, "2026-11-24T00:00:00Z", nil), tt.signers...)
		if err != nil {
			t.Fatal(err)
		}
		if got := keys.Sole(signed); got != tt.want {
			t.Errorf("signed by %s: got %t, want %t", what, got, tt.want)
		}
	}
}

func TestAfter(t *testing.T) {
	seen := note.Note{Counter: 7, AsOf: "2026-11-24T00:00:00Z"}
	for _, tt := range []struct {
		name string
		n    note.Note
		want error
	}{
		{"the same", seen, nil},
		{"the next", note.Note{Counter: 8, AsOf: "2026-11-24T00:00:00Z"}, nil},
		{"a smaller counter", note.Note{Counter: 6, AsOf: "2026-11-25T00:00:00Z"}, note.ErrOlder},
		{"an earlier time", note.Note{Counter: 8, AsOf: "2026-11-23T23:59:59Z"}, note.ErrOlder},
		{"another root with the same counter", note.Note{Counter: 7, AsOf: "2026-11-24T00:00:00Z", Root: site.Sum256(nil)}, note.ErrOlder},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.n.After(seen); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if err := tt.n.After(note.Note{}); err != nil {
				t.Errorf("without a note seen before: %v", err)
			}
		})
	}
}

// Errors do not show a secret key given as a public one, because errors end up in logs.
func TestSecretKeyIsNotShown(t *testing.T) {
	private := testkey.New(t, name).Private
	if _, err := note.ParseKeys(private); err == nil || strings.Contains(err.Error(), private[len(private)-8:]) {
		t.Errorf("got %v, want an error without the key", err)
	}
}

// Key names are host names: other characters separate notes and keys, or look alike.
func TestNames(t *testing.T) {
	good := testkey.New(t, name)
	for _, bad := range []string{
		"", "a b", "a+b", "a\nb", "a\x00b", "a\x1bb", "a\u202eb", "a\u200bb", "a\u00a0b", "f\u043ellow.example", "follow\uff0eexample",
		"-a.example", "a-.example", ".a", "a.", "a..b", "a_b", "a/b", strings.Repeat("a", 64), strings.Repeat("a.", 127) + "a", "caf\u00e9.example", "a\xff",
	} {
		private := strings.Replace(good.Private, "PRIVATE+KEY+"+name, "PRIVATE+KEY+"+bad, 1)
		public := strings.Replace(good.Public, name, bad, 1)
		_, _, made := note.NewKey(bad)
		_, ofHSM := note.PublicOf(bad, make([]byte, 32))
		_, signer := note.ParsePrivate(private)
		_, external := note.External(public, nil)
		_, keys := note.ParseKeys(public)
		for what, err := range map[string]error{"NewKey": made, "PublicOf": ofHSM, "ParsePrivate": signer, "External": external, "ParseKeys": keys} {
			if err == nil || !strings.Contains(err.Error(), "use a host name, such as follow.example") {
				t.Errorf("%s of the name %q: got %v, want the rule of a host name", what, bad, err)
			} else if strings.Contains(err.Error(), private[len(private)-8:]) || strings.ContainsAny(err.Error(), "\n\x00\x1b\u202e\u200b") {
				t.Errorf("%s of the name %q: got %q, want neither the key nor control characters", what, bad, err)
			}
		}
	}
	for _, fine := range []string{"a", "a-b.example", "xn--caf-dma.example", "Host-1", strings.Repeat("a", 63)} {
		k := testkey.New(t, fine)
		if k.Signer.Name() != fine {
			t.Errorf("got %s, want %s", k.Signer.Name(), fine)
		}
	}
}

// A counter more than a day ahead of the clock is rejected.
func TestAhead(t *testing.T) {
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	key := testkey.New(t, name)
	for ahead, want := range map[time.Duration]error{0: nil, note.MaxAhead: nil, note.MaxAhead + time.Second: note.ErrAhead} {
		n := note.Of(name, uint64(now.Add(ahead).Unix()), "2026-11-24T00:00:00Z", nil)
		signed, err := note.Sign(n, key.Signer)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := key.Keys.Open(signed, now); !errors.Is(err, want) {
			t.Errorf("%s ahead: got %v, want %v", ahead, err, want)
		}
		if got := len(key.Keys.OpenAnnounced(signed, now)); (got == 0) != (want != nil) {
			t.Errorf("%s ahead: got %d announced", ahead, got)
		}
	}
}

// The greatest counter comes first, regardless of the order of the joined notes, because the next
// one must exceed it.
func TestTheGreatestCounterComesFirst(t *testing.T) {
	key := testkey.New(t, name)
	var signed [3][]byte
	for i := range signed {
		var err error
		if signed[i], err = note.Sign(note.Of(name, uint64(1+i), "2026-11-24T00:00:00Z", nil), key.Signer); err != nil {
			t.Fatal(err)
		}
	}
	all := key.Keys.OpenAnnounced(note.Join(signed[1], signed[0], signed[2]), time.Unix(0, 0))
	if len(all) != 3 || all[0].Counter != 3 || all[2].Counter != 1 || !bytes.Equal(all[0].Signed, signed[2]) {
		t.Errorf("got %+v, want the counters 3, 2, 1", all)
	}
}

const entryKey site.Key = "_refresh/details/7"

func signedEntry(t testing.TB, k testkey.Key, at time.Time, entry string) string {
	t.Helper()
	signed, err := note.SignEntry(entryKey, at, []byte(entry), k.Signer)
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

// An entry is accepted only unchanged, under its own key, and signed by a known key.
func TestOpenEntry(t *testing.T) {
	now := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	mine, other := testkey.New(t, "refresher"), testkey.New(t, "refresher")
	const entry = `{"name":"a,\"note\":\"<b>","writes":1}`
	signed := signedEntry(t, mine, now, entry)
	member := signed[strings.LastIndex(signed, `,"note":`):]
	ofSite, err := note.Sign(note.Of("refresher", 1, "2026-11-24T00:00:00Z", nil), mine.Signer)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key  site.Key
		body string
		err  error
	}{
		"as it was signed":            {entryKey, signed, nil},
		"under another key":           {"_refresh/details/8", signed, note.ErrForged},
		"without a note":              {entryKey, entry, note.ErrUnsigned},
		"with a note of nobody":       {entryKey, `{"a":1,"note":` + strconv.Quote("followpress refresh 1\n\n— a AAAAAAAA\n") + `}`, note.ErrUnsigned},
		"with no body":                {entryKey, "", note.ErrUnsigned},
		"by another key of that name": {entryKey, signedEntry(t, other, now, entry), note.ErrUnsigned},
		"another body":                {entryKey, strings.Replace(signed, `"writes":1`, `"writes":2`, 1), note.ErrForged},
		"a member put in":             {entryKey, strings.Replace(signed, `{"name"`, `{"x":1,"name"`, 1), note.ErrForged},
		"a member after the note":     {entryKey, strings.TrimSuffix(signed, "}") + `,"name":"b"}`, note.ErrUnsigned},
		"a second note":               {entryKey, strings.TrimSuffix(signed, "}") + member, note.ErrForged},
		"a space after the note":      {entryKey, signed + " ", note.ErrUnsigned},
		"the note written otherwise":  {entryKey, strings.Replace(signed, `followpress refresh`, `followpress\u0020refresh`, 1), note.ErrUnsigned},
		"signed in two days":          {entryKey, signedEntry(t, mine, now.Add(48*time.Hour), entry), note.ErrAhead},
		"the note of a site":          {entryKey, `{"a":1,"note":` + strconv.Quote(string(ofSite)) + `}`, note.ErrForged},
	} {
		got, err := mine.Keys.OpenEntry(c.key, []byte(c.body), now)
		if !errors.Is(err, c.err) || c.err == nil && string(got) != entry || c.err != nil && got != nil {
			t.Errorf("%s: got %q, %v, want %v", name, got, err, c.err)
		}
	}
	if _, err := (note.Keys{}).OpenEntry(entryKey, []byte(signed), now); !errors.Is(err, note.ErrUnsigned) {
		t.Errorf("without keys: got %v, want %v", err, note.ErrUnsigned)
	}
	if _, _, err := mine.Keys.Open([]byte(signed), now); err == nil {
		t.Error("an entry was taken for the note of a site")
	}
}

// FuzzOpenEntry: every entry that opens was signed.
func FuzzOpenEntry(f *testing.F) {
	now := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	k := testkey.New(f, "refresher")
	signed := signedEntry(f, k, now, `{"a":1}`)
	f.Add(signed)
	f.Add(`{"a":1,"note":"x"}`)
	f.Fuzz(func(t *testing.T, body string) {
		if entry, err := k.Keys.OpenEntry(entryKey, []byte(body), now); err == nil && string(entry) != `{"a":1}` {
			t.Errorf("got %q of %q, want only the signed part", entry, body)
		}
	})
}
