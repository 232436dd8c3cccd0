// Package report says what changed between two sites, from their manifests and objects alone, and
// shows it as a page, as JSON and as Markdown. It also draws the picture of a run of a command.
//
// # Memory
//
// Sites may be huge, and a bucket may be somebody else's, so what a comparison keeps does not grow
// with them:
//
//   - the entries of at most 8 parts of each manifest, of shards of at most 4 MiB;
//   - at most Options.Concurrency pairs of objects, of at most Options.Memory bytes together; a pair
//     that is larger is compared alone, and an object of more than 256 MiB is an error. Comparing two
//     lists takes some three times their bytes beside them;
//   - numbers of 524,288 accounts and of 65,536 tags (each of at most 1 KiB, on records with tags of at
//     most 64 KiB), and the addresses of 524,288 changed profiles: what is beyond is counted, and the
//     report says how much that is;
//   - of everything that a report lists, the first 20 to 50, with texts of at most 200 bytes.
//
// With the defaults that is at most about 400 MiB, whatever the sites are, unless a pair of objects is
// larger than Options.Memory. Reports of ordinary sites take far less.
//
// The API may change in any release.
//
// # The path of a report
//
//  1. report/compare.go compares the manifests of two sites as a publish does, counts the objects that differ by
//     kind, and reads those that say what changed. source.go checks each of them against its entry; a body that a
//     refresh has put counts too.
//  2. lists.go, tags.go, profiles.go and boards.go compare the bodies. They keep numbers and the first rows of
//     each list, within the limits that doc.go states. names.go looks up the names of the accounts that the report
//     shows.
//  3. html.go and chart.go make the page, markdown.go the short form. Texts of profiles are hostile: html/template
//     escapes them, and Markdown has entities for punctuation. The page's policy allows its own style sheet, by
//     its hash, and nothing else.
//  4. publish.go puts page and JSON, and then the entry of the index, by a conditional write.
package report
