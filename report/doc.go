// Package report compares two sites, from their manifests and objects alone, and shows the changes as a page, as JSON
// and as Markdown. It also renders the report of a command's run as a page.
//
// # Memory
//
// Sites may be huge and buckets untrusted, so a comparison's memory does not grow with them:
//
//   - entries of at most 8 parts of each manifest, of shards of at most 4 MiB;
//   - at most Options.Concurrency pairs of objects, of at most Options.Memory bytes together; a larger pair is compared alone, and
//     an object of more than 256 MiB is an error. Comparing two lists takes some three times their bytes in addition;
//   - counts of 524,288 accounts and of 65,536 tags (each of at most 1 KiB, on records with tags of at most 64 KiB), and the
//     addresses of 524,288 changed profiles; the report states how many changes are beyond these limits;
//   - the first 20 to 50 entries of each list in the report, with texts of at most 200 bytes.
//
// With the defaults, that is about 400 MiB at most, unless a pair of objects exceeds Options.Memory. Reports of
// ordinary sites take far less.
//
// # Hostile input
//
// Texts of profiles are hostile. html/template escapes them, and Markdown has entities for punctuation. The page's
// policy allows its own style sheet, by hash, and nothing else. Each object is checked against its manifest entry, or
// against a refresh that replaced it.
//
// The API may change in any release.
package report
