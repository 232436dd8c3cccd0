package badge

import (
	"testing"

	"github.com/followpress/followpress/site"
)

func TestNormalDate(t *testing.T) {
	for text, want := range map[string]string{
		"12-Nov-2024":               "12-Nov-2024",
		"12-NOV-2024":               "12-Nov-2024",
		"2-Nov-2024":                "02-Nov-2024",
		"2-November-2024":           "02-Nov-2024",
		"2024-11-02":                "02-Nov-2024",
		"2024-11-02T23:59:59.000Z":  "02-Nov-2024",
		"2024-11-02T23:59:59-11:00": "02-Nov-2024",
		"2024-11-02 10:00:00":       "02-Nov-2024",
		"2024/11/02":                "02-Nov-2024",
		"11-02-2024":                "02-Nov-2024",
		"11/02/2024":                "02-Nov-2024",
		"November 2, 2024":          "02-Nov-2024",
		"Nov 2, 2024":               "02-Nov-2024",
		"2 Nov 2024":                "02-Nov-2024",
		" 2 November 2024 ":         "02-Nov-2024",
		"29-Feb-2023":               "29-Feb-2023", // no such day: as it is
		"31-12-2024":                "31-12-2024",
		"soon":                      "soon",
		"":                          "",
		"2024-11":                   "2024-11",
		"20241102T10":               "20241102T10",
	} {
		if got := normalDate(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestDecodeEvent(t *testing.T) {
	got, err := decodeEvent([]byte(`{"id":7,"name":"n","country":null,"start_date":"2023-02-01","timezone":"x","from_admin":true}`), "7")
	if want := (site.Event{ID: 7, Name: "n", Year: 2023, StartDate: "01-Feb-2023"}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for name, body := range map[string]string{
		"another id": `{"id":8}`, "no id": `{}`, "id is a text": `{"id":"7"}`, "a name of another type": `{"id":7,"name":[]}`,
		"a year with a fraction": `{"id":7,"year":2024.5}`, "no object": `[7]`, "nothing": ``, "null": `null`,
		"half of a surrogate": `{"id":7,"name":"\ud800"}`, "not UTF-8": "{\"id\":7,\"name\":\"\xff\"}",
	} {
		if _, err := decodeEvent([]byte(body), "7"); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
}
