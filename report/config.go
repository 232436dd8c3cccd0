package report

import (
	"fmt"

	"github.com/followpress/followpress/site"
)

// checkComparable returns an error unless the objects of two sites mean the same. It names the first setting that
// differs. An explorer makes no difference.
func checkComparable(from, to *source) error {
	a, b := from.root.Config, to.root.Config
	for _, member := range []struct {
		name   string
		of, in any
	}{
		{"api", apiOf(a), apiOf(b)}, {"base_path", a.BasePath, b.BasePath}, {"names", namesOf(a), namesOf(b)},
		{"badges_field", a.BadgesField, b.BadgesField}, {"leaderboard_max", a.LeaderboardMax, b.LeaderboardMax},
		{"max_profile_text", a.MaxProfileText, b.MaxProfileText}, {"max_profile", a.ProfileLimits().Whole, b.ProfileLimits().Whole}, {"profile_url", a.ProfileURL, b.ProfileURL},
	} {
		if member.of != member.in {
			return fmt.Errorf("the sites cannot be compared: %s is %v in %s and %v in %s; generate both with the same flags",
				member.name, member.of, from.name, member.in, to.name)
		}
	}
	return nil
}

func apiOf(c site.Config) string {
	if c.EFP() {
		return site.APIEFP
	}
	return site.APISpec
}

func namesOf(c site.Config) string {
	if c.Names == "" {
		return site.NamesCopies
	}
	return c.Names
}
