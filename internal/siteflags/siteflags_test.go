package siteflags_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/siteflags"
	"github.com/followpress/followpress/site"
)

// parse returns the configuration that arguments give.
func parse(t *testing.T, args ...string) (site.Config, error) {
	t.Helper()
	var flags siteflags.Flags
	parser, err := kong.New(&flags, kong.DefaultEnvars("FOLLOWPRESS"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(args)
	return flags.Site(), err
}

// file returns the name of a file with the text.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "site.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Each setting says the same in a file, in a variable and as a flag, and changes the configuration.
func TestEachSetting(t *testing.T) {
	values := map[string]any{
		"about": "Who", "api": "efp", "badges_field": "b", "base_path": "x", "colour": "#112233", "data": true, "data_licence": "CC0-1.0",
		"explorer": false, "explorer_key": []string{"a.example+1", "b.example+2"}, "history_window": "24h", "home": "https://h.example", "leaderboard_max": 12,
		"logo": "https://l.example", "max_profile": 2048, "max_profile_text": 1024, "names": "lookup", "pages": true, "pages_min": 3,
		"pictures": "off", "profile_url": "https://p.example/{address}", "public_url": "https://s.example", "ranks_every": "1h",
		"ranks_from": "folder", "reports": true, "title": "A title",
	}
	parser, err := kong.New(&siteflags.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range parser.Model.Flags {
		if flag.Name == "help" || flag.Name == "config" {
			continue
		}
		member := siteflags.Member(flag)
		t.Run(member, func(t *testing.T) {
			body, err := json.Marshal(map[string]any{member: values[member]})
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Trim(strings.TrimSuffix(strings.SplitN(string(body), ":", 2)[1], "}"), `"`)
			given := []string{"--" + flag.Name + "=" + text}
			if list, ok := values[member].([]string); ok {
				given = nil
				for _, one := range list {
					given = append(given, "--"+flag.Name+"="+one)
				}
			}
			needs := []string{"--api=efp"} // some settings have no effect otherwise
			if member == "api" {
				needs = nil
			}
			plain, _ := parse(t, needs...)
			byFlag, err := parse(t, append(needs, given...)...)
			if err != nil {
				t.Fatal(err)
			}
			byFile, err := parse(t, append(needs, "--config="+file(t, string(body)))...)
			if err != nil || byFile != byFlag {
				t.Errorf("%s: got %+v (%v), want %+v as by %q", body, byFile, err, byFlag, given)
			}
			if byFlag == plain && member != "ranks_from" {
				t.Errorf("%q: got the configuration without", given)
			}
		})
	}
}

// A variable overrides the file, and a flag overrides both. The file may be named by a variable.
func TestOrder(t *testing.T) {
	title := func(args ...string) string {
		c, err := parse(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		return c.Title
	}
	t.Setenv("FOLLOWPRESS_CONFIG", file(t, `{"title":"file"}`))
	if got := title(); got != "file" {
		t.Errorf("got %q, want file", got)
	}
	t.Setenv("FOLLOWPRESS_TITLE", "variable")
	if got := title(); got != "variable" {
		t.Errorf("got %q, want variable", got)
	}
	if got := title("--title=flag"); got != "flag" {
		t.Errorf("got %q, want flag", got)
	}
}

// A file that is not one of settings is refused, with its name and the reason.
func TestBadFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "not a JSON object",
		`[]`:                          "not a JSON object",
		`{"title":"x"`:                "bad JSON",
		`{"title":"x"} {}`:            "bad JSON",
		`{"titel":"x"}`:               `"titel": no such setting`,
		`{"leaderboard-max":12}`:      `"leaderboard-max": no such setting`,
		`{"config":"x"}`:              `"config": no such setting`,
		`{"tags":"fastly"}`:           `"tags": no such setting`,
		`{"title":5}`:                 "title: write a text in quotes",
		`{"title":null}`:              "title: write a text in quotes",
		`{"title":{"a":1}}`:           "title: write a text in quotes",
		`{"pages":"true"}`:            "pages: write true or false",
		`{"pages":null}`:              "pages: write true or false",
		`{"leaderboard_max":"12"}`:    "leaderboard_max: write a whole number",
		`{"leaderboard_max":null}`:    "leaderboard_max: write a whole number",
		`{"leaderboard_max":1.5}`:     "leaderboard-max",
		`{"explorer_key":[1]}`:        "explorer_key: write a text in quotes",
		`{"explorer_key":null}`:       "explorer_key: write a text in quotes",
		`{"history_window":"1 week"}`: "history-window",
		`{"names":"both"}`:            "--names must be one of",
		"{\"title\":\"\xff\"}":        "not valid UTF-8",
		strings.Repeat(" ", 2<<20):    "larger than 1048576 bytes",
	} {
		if _, err := parse(t, "--config="+file(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
	for _, name := range []string{filepath.Join(t.TempDir(), "missing"), t.TempDir(), "/dev/zero"} {
		if _, err := parse(t, "--config="+name); err == nil || strings.Count(err.Error(), name) != 1 {
			t.Errorf("%s: got %v, want an error that names it once", name, err)
		}
	}
}
