// Package generator turns a snapshot of a follow graph into a site: it reads the tables, builds a
// compact graph, ranks the accounts, renders every object, and writes them to a folder, a tar file
// or a file system in memory.
//
// The same snapshot and configuration give byte-identical objects with any number of workers: rows
// are numbered in the order of the snapshot, whichever goroutine parsed them, ties are broken
// completely, and rendering is a pure function of the graph.
//
// # The path of a record
//
//  1. Package snapshot reads a table in blocks, parses them on all cores, and returns the rows in the
//     order of the file.
//  2. One goroutine of internal/load numbers accounts and lists in this order. Records come last, so
//     the workers look up existing numbers themselves, and number forms (combinations of type and
//     tags), which never show in the output. Only accounts that no other table names wait for their
//     turn. Once all accounts are known, refreshed data are merged: newer profiles before names are
//     chosen, newer badges after the snapshot's.
//  3. Workers pack records into columns, group them by list on all cores, and merge repeated ones. A
//     record now takes 5 bytes: its subject and its form.
//  4. internal/rank counts and ranks, with atomic additions from many goroutines. This takes 4 more
//     bytes for each follow of a primary list.
//  5. For the API efp, internal/graph groups the records of primary lists by the account that they hold,
//     latest first, in 9 bytes each, and groups the operations by account and by list.
//  6. internal/output cuts the site into chunks of at most 64 units (a list, a name, a bucket …).
//     internal/whole renders chunks on all cores, and internal/output collects them in order. The
//     key, size and digests of each object go to memory, up to 16 MiB, and then to a temporary file,
//     in partitions of successive shards of the manifest.
//  7. An output receives the objects: a folder, a tar file, or nothing, when the new site is only
//     compared with the old one. The manifest and the root are written last. For publish --snapshot,
//     a Site renders everything once for the manifest, and an object again when the publisher reads
//     it.
//
// # Replace the whole folder in one step
//
// A plain web server may read the output at any time, and the generator may be killed at any time.
// So a new site is built in .{name}.followpress next to the output, and one
// renameat2(RENAME_EXCHANGE) swaps the two. On file systems without that call, two renames do it,
// and the next run repairs a swap that was cut off between them.
//
// A run checks in advance whether the swap would fail, by a rename that must fail because its
// target is a non-empty folder: any other error means that the swap would fail too. syncfs runs
// before the swap and fsync of the folder after it, so that a power failure does no more harm than
// a kill.
//
// A run creates all folders of a new site; unchanged objects become hard links to the files of the
// old site. The run trusts nothing of the old folder that it has not checked: while it renders the
// site to compare it, it checks each file of the old site, and writes the objects whose file is
// missing or has another size. To change a folder at the cost of the changes only, use publish
// --snapshot --dest file://, which puts objects one by one.
//
// # Stability
//
// The API may change in any release. Package site defines the formats of the site.
package generator
