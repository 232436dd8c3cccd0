package output

import (
	"cmp"
	"slices"
	"strings"

	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
)

// A kind is the common part of keys: the segments before and after the one that varies. after is
// "*" if nothing follows, and "" for a key of one segment.
type kind struct{ before, after string }

func (k kind) String() string {
	switch k.after {
	case "":
		return k.before
	case "*":
		return k.before + "/*"
	}
	return k.before + "/*/" + k.after
}

// kindOf returns the kind of a key, given the base path with a slash. It is called for every
// object, so it avoids the slower table of routes. Keys vary in the second segment after the base
// path, or from the third segment on.
func kindOf(key site.Key, base string) kind {
	text := string(key)
	if path, ok := strings.CutPrefix(text, base); ok {
		first, rest, deep := strings.Cut(path, "/")
		k := kind{before: text[:len(base)+len(first)]}
		if deep {
			k.after = "*"
		}
		if _, after, deeper := strings.Cut(rest, "/"); deeper {
			k.after = after
		}
		return k
	}
	first, rest, deep := strings.Cut(text, "/")
	if !deep {
		return kind{before: text}
	}
	if second, _, deeper := strings.Cut(rest, "/"); deeper {
		first = text[:len(first)+1+len(second)]
	}
	return kind{first, "*"}
}

type kindCount struct{ objects, bytes int64 }

type kindCounts map[kind]kindCount

// add adds a count to a kind.
func (k kindCounts) add(of kind, n kindCount) {
	sum, ok := k[of]
	if !ok { // do not retain the memory of a key
		of = kind{strings.Clone(of.before), strings.Clone(of.after)}
	}
	k[of] = kindCount{sum.objects + n.objects, sum.bytes + n.bytes}
}

// report lists the kinds, largest first.
func (k kindCounts) report() []summary.KindReport {
	all := make([]summary.KindReport, 0, len(k))
	for kind, n := range k {
		all = append(all, summary.KindReport{Keys: kind.String(), Objects: n.objects, Bytes: n.bytes})
	}
	slices.SortFunc(all, func(a, b summary.KindReport) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Keys, b.Keys))
	})
	return all
}
