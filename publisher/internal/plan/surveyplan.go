package plan

import (
	"context"
	"strings"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/publisher/internal/spool"
	"github.com/followpress/followpress/publisher/internal/survey"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// FromListing makes a plan from a listing. It skips objects that a run put before it was cut off,
// and deletes leftovers that do not belong to the site.
func (p *Planner) FromListing(ctx context.Context, found *lock.Mark, progress requests.Progress) (*Plan, error) {
	if found == nil {
		found = &lock.Mark{}
	}
	next := &p.Source.Root
	result := New(spool.New(p.Bucket.Log, p.Memory), p.Live != nil)
	configs := found.Configs(p.Live, next)
	manifest, err := p.Source.Manifest(ctx)
	if err != nil {
		result.Close()
		return nil, err
	}
	s := &survey.Survey{Bucket: p.Bucket, Root: next, Manifest: manifest, Own: manifest, Ours: true, Progress: progress, Configs: configs, Refreshers: p.Refreshers, Memory: p.Memory,
		Found: p.Findings(result),
		UpToDate: func(info storage.Info) bool {
			route, ok := next.Config.RouteOf(info.Key)
			if !ok {
				return false
			}
			rules, known := found.RulesAt(info.Modified, route.Pattern, p.Live)
			return known && rules == next.HeaderRules[route.Pattern]
		}}
	if err := s.Take(ctx); err != nil {
		result.Close()
		return nil, p.Source.Damaged(err)
	}
	return result, nil
}

// Findings returns a function that adds a survey's findings to a plan. Foreign objects stay.
func (p *Planner) Findings(to *Plan) func(survey.Finding) {
	return func(f survey.Finding) {
		switch f.State {
		case survey.Unknown, survey.Announced:
			to.addDelete(f.Key)
		case survey.Missing, survey.Altered, survey.Stale:
			if name, ok := strings.CutPrefix(string(f.Key), string(site.ManifestKey(""))); ok {
				if name == f.Shard {
					to.addManifest(name)
				} else {
					to.addIndex(name)
				}
				return
			}
			reason := site.Altered
			if f.State == survey.Missing {
				reason = site.Added
			}
			to.Add(p.Source.Root.Config, f.Shard, site.Change{Entry: f.Entry, Reason: reason})
		}
	}
}
