package publisher

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
)

// errForeign means that a publish would overwrite objects that no publisher has put.
var errForeign = errors.New("the site would overwrite foreign objects")

const maxForeignNamed = 5

// refuseForeign returns an error for objects that a run would overwrite, unless Options.Overwrite
// is set.
func (r *run) refuseForeign(keys []site.Key, err error) error {
	if err != nil || len(keys) == 0 || r.options.Overwrite {
		return err
	}
	slices.Sort(keys)
	var named []string
	for _, key := range keys[:min(len(keys), maxForeignNamed)] {
		named = append(named, string(key))
	}
	more := ""
	if n := len(keys) - len(named); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%w: %s%s; use a separate prefix, or --overwrite to replace them", errForeign, strings.Join(named, ", "), more)
}
