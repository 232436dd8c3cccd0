package profile_test

import (
	"testing"

	"github.com/followpress/followpress/fixtures/worst"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/profile"
)

// TestWorstAnswers: whatever a worker answers, a run asks for at most some times the bytes of the
// largest answer that it takes, 1 MiB for each account.
func TestWorstAnswers(t *testing.T) {
	const accounts = 2
	wanted := map[site.Address]uint32{}
	for n := range accounts {
		wanted[address(n)] = 1
	}
	for _, name := range worst.Names() {
		for where, begin := range map[string]string{
			"alone": ``, "response": `{"response_length":2,"response":`, "unknown": `{"unknown":`,
			"profile": `{"response_length":2,"response":[{"name":"a.eth","records":`,
		} {
			worst.Check(t, where+": "+name, 20*accounts<<20, func() {
				report, err := profile.Refresh(t.Context(), profile.Options{
					State: t.TempDir(), URL: "https://worker.example", Wanted: wanted, Budget: source.Budget{Requests: 2},
					Progress: silent{}, Transport: worst.JSON[name].Around(begin).Answer(worst.Size),
				})
				if err != nil || report.Found > 0 {
					t.Errorf("%s, %s: got %+v and %v", where, name, report, err)
				}
			})
		}
	}
}
