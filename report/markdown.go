package report

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// mostMarkdown is the maximum number of rows of a table in Markdown, so that a job's summary fits a screen.
const mostMarkdown = 5

// Markdown formats a short version of the report for the summary of a CI job. Texts of profiles cannot become markup.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### What changed: %s to %s\n\n", r.From.AsOf, r.To.AsOf)
	if r.Equal {
		fmt.Fprintf(&b, "The two sites are equal: all %s objects are the same.\n\n", number(r.To.Counts.Objects))
		return b.String()
	}
	b.WriteString("| | before | now | difference |\n|---|---:|---:|---:|\n")
	for _, row := range r.sizes() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", row.What, row.From, row.To, row.Difference)
	}
	n := number
	f := r.Follows
	fmt.Fprintf(&b, "\n| | began | ended |\n|---|---:|---:|\n| lists | %s | %s |\n| follows | %s | %s |\n| blocks | %s | %s |\n| mutes | %s | %s |\n",
		n(r.Lists.New), n(r.Lists.Gone), n(f.Follows), n(f.Unfollows), n(f.Blocks), n(f.Unblocks), n(f.Mutes), n(f.Unmutes))
	p := r.Profiles
	fmt.Fprintf(&b, "\nLists with other records: %s. Changed profiles: %s (%s names, %s avatars).\n\n", n(r.Lists.Changed), n(p.Changed), n(p.Names), n(p.Avatars))
	if len(r.Accounts.Gained)+len(r.Accounts.Lost) > 0 {
		b.WriteString("| account | followed by | unfollowed by |\n|---|---:|---:|\n")
		for _, a := range append(firstOf(r.Accounts.Gained, mostMarkdown), firstOf(r.Accounts.Lost, mostMarkdown)...) {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", person(a.Name, a.Address), n(a.Follows), n(a.Unfollows))
		}
		b.WriteByte('\n')
	}
	for _, board := range r.Boards {
		if len(board.Risen)+len(board.Fallen) == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s | before | now |\n|---|---:|---:|\n", boardTitle(board.Board))
		for _, p := range append(firstOf(board.Risen, mostMarkdown), firstOf(board.Fallen, mostMarkdown)...) {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", person(p.Name, p.Address), n(p.From), n(p.To))
		}
		b.WriteByte('\n')
	}
	if len(r.Tags.More)+len(r.Tags.Less) > 0 {
		b.WriteString("| tag | records that got it | records that lost it |\n|---|---:|---:|\n")
		for _, t := range append(firstOf(r.Tags.More, mostMarkdown), firstOf(r.Tags.Less, mostMarkdown)...) {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", markdown(t.Tag), n(t.Added), n(t.Removed))
		}
		b.WriteByte('\n')
	}
	put, removed := r.objects()
	fmt.Fprintf(&b, "Objects: %s new or changed (%s), %s gone (%s).\n\n", n(put.Objects), size(put.Bytes), n(removed.Objects), size(removed.Bytes))
	return b.String()
}

// person formats the name of an account in Markdown, and the start of its address.
func person(name, address Text) string {
	short := string(address)
	if len(address) == 42 {
		short = short[:8] + "…" + short[38:]
	}
	if name == "" {
		return short
	}
	return markdown(name) + " (" + short + ")"
}

// maxMarkdownText is the maximum length of a text in Markdown, in characters.
const maxMarkdownText = 40

// markdown escapes a text for Markdown. Punctuation becomes entities, including the dots of host names, which would
// become links. Isolates keep a right-to-left name from reordering its neighbours.
func markdown(t Text) string {
	text := t.String()
	var b strings.Builder
	dots := !strings.Contains(strings.ToLower(text), "www.")
	isolate := strings.ContainsFunc(text, func(r rune) bool { return r >= 0x590 })
	if isolate {
		b.WriteRune('\u2068')
	}
	shown := 0
	for _, r := range text {
		if shown == maxMarkdownText {
			b.WriteRune('…')
			break
		}
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == ' ', r == '-', r == '.' && dots:
			b.WriteRune(r)
		case r == '\n', r == '\t':
			b.WriteRune(' ')
		case r <= unicode.MaxASCII:
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
		shown++
	}
	if isolate {
		b.WriteRune('\u2069')
	}
	return b.String()
}

// String formats the report in a few lines.
func (r *Report) String() string {
	var b strings.Builder
	took := r.Elapsed.Round(time.Millisecond)
	fmt.Fprintf(&b, "from      %s, as of %s\nto        %s, as of %s\n", r.From.Site, r.From.AsOf, r.To.Site, r.To.AsOf)
	if r.Equal {
		fmt.Fprintf(&b, "the sites are equal (%s)\n", took)
		return b.String()
	}
	fmt.Fprintf(&b, "lists     %10d new, %d gone, %d changed\n", r.Lists.New, r.Lists.Gone, r.Lists.Changed)
	fmt.Fprintf(&b, "follows   %10d, and %d unfollows\n", r.Follows.Follows, r.Follows.Unfollows)
	fmt.Fprintf(&b, "profiles  %10d changed\n", r.Profiles.Changed)
	put, removed := r.objects()
	fmt.Fprintf(&b, "objects   %10d new or changed, %s; %d gone\n", put.Objects, size(put.Bytes), removed.Objects)
	fmt.Fprintf(&b, "read      %10d objects and %d shards of the manifests, %s (%s)\n", r.Read.Objects, r.Read.Shards, size(r.Read.Bytes), took)
	return b.String()
}
