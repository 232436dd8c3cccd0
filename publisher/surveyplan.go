package publisher

import (
	"context"
	"strings"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/spool"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// surveyPlan makes a plan from a listing. Objects that a run has put before it was cut off need
// not be put again; leftovers that do not belong to the site are deleted.
func (p *planner) surveyPlan(ctx context.Context, found *lock.Mark, progress progress) (*plan, error) {
	if found == nil {
		found = &lock.Mark{}
	}
	next := &p.source.root
	result := newPlan(spool.New(p.bucket.Log, p.memory), p.live != nil)
	configs := found.Configs(p.live, next)
	manifest, err := p.source.manifest(ctx)
	if err != nil {
		result.close()
		return nil, err
	}
	s := &survey{bucket: p.bucket, root: next, manifest: manifest, own: manifest, ours: true, progress: progress, configs: configs, refreshers: p.refreshers, memory: p.memory,
		found: p.planFindings(result),
		upToDate: func(info storage.Info) bool {
			route, ok := next.Config.RouteOf(info.Key)
			if !ok {
				return false
			}
			rules, known := found.RulesAt(info.Modified, route.Pattern, p.live)
			return known && rules == next.HeaderRules[route.Pattern]
		}}
	if err := s.take(ctx); err != nil {
		result.close()
		return nil, p.source.damaged(err)
	}
	return result, nil
}

// planFindings returns a function that plans what a survey finds. Foreign objects stay.
func (p *planner) planFindings(to *plan) func(finding) {
	return func(f finding) {
		switch f.state {
		case unknown, announced:
			to.addDelete(f.Key)
		case missing, altered, stale:
			if name, ok := strings.CutPrefix(string(f.Key), string(site.ManifestKey(""))); ok {
				if name == f.shard {
					to.addManifest(name)
				} else {
					to.addIndex(name)
				}
				return
			}
			reason := site.Altered
			if f.state == missing {
				reason = site.Added
			}
			to.add(p.source.root.Config, f.shard, site.Change{Entry: f.Entry, Reason: reason})
		}
	}
}
