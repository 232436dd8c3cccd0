// Package generator turns a snapshot of a follow graph into a site: it reads the tables, builds a
// compact graph, ranks the accounts, renders every object, and writes them to a folder, a tar
// file or a file system in memory.
//
// The same snapshot and configuration give byte-identical objects with any number of workers:
// rows are numbered in the order of the snapshot, whichever goroutine parsed them, ties are broken
// completely, and rendering is a pure function of the graph.
//
// # The path of a record
//
//  1. snapshot/writer.go writes the row. internal/rowjson there refuses what the reader would refuse, and
//     tablewriter.go compresses. staging replaces the old snapshot with the new one.
//  2. These rooms are below snapshot/internal. folder opens all files at once, so that a run reads one snapshot even if
//     another process replaces it; storage/internal/files does the same for a snapshot in a bucket, by range requests for the
//     versions that were listed. table/parts.go finds the files of a table and reads several side by side, or one on its
//     own, for readers that share the files among them. lines/frames.go finds the frames of a single file of zstd, and
//     has them unpacked side by side. lines/cut.go cuts a file into blocks of whole lines; parquet reads rows of Parquet,
//     column by column. inorder passes the blocks to one worker per core. rowjson/scan.go reads records and accounts in
//     their usual form; all other rows go to rowjson/parse.go, which decodes them with go-json. parquet/rows.go makes
//     records and accounts of columns, and lines of all other rows of Parquet. An invalid row becomes a RowError with
//     file and line.
//  3. The results come back in the order of the file to one goroutine, generator/internal/load/load.go, which
//     numbers accounts and lists. This order makes the output independent of the number of workers. The records come
//     last, so the workers themselves look up what is numbered already (render/numbering.go), and number what never shows
//     (render/forms.go: combinations of type and tags); only accounts that no other table names wait for their
//     turn. render/profile.go keeps the encoded profiles in few large pieces of memory. Once all accounts are
//     known, load/refreshed.go merges the refreshed data that storage/refreshed reads: newer profiles before names
//     are chosen, newer badges after the snapshot's.
//  4. Workers pack records into columns. load/incoming.go copies these into blocks as they come, groups them by list, on
//     all cores, and frees the blocks; repeated.go merges repeated ones.
//     A record of render/records.go now has 5 bytes: what it is about, and its form.
//  5. internal/rank counts and ranks: many goroutines count, by atomic additions.
//     That takes 4 more bytes for each follow of a primary list.
//  6. For the API efp, render/relations.go turns the graph round: it groups the records of primary lists by the
//     account that they hold, latest first, in 9 bytes each. Goroutines that distribute them take turns for each range of
//     accounts.
//     load/ops.go reads the operations, which render/history.go keeps in the order of answers: those of one time are sorted
//     when the last one is there, so that none keeps its chain and block. render/operations.go groups them by account
//     and by list. A shard of a thousand is a unit.
//  7. internal/output/render.go cuts the site into chunks of at most 64 units (a unit is a list, a name, a bucket …) and has them
//     rendered, again on all cores and collected in order. What renders them is in render/, where site.go has the
//     units and encode.go the encoders. For the API efp, efpunits.go has the units, of which one is an account with all
//     its lists, so that each body is rendered once whatever the number of its keys; account.go and encode_efp.go
//     have the encoders, tables.go and shards.go the shards, heads and buckets. explore.go has the explorer's files, which
//     are bundled while the snapshot is read, and what only the explorer asks for. pieces.go bounds the
//     rendered bytes that wait for their turn. entries.go records the key, size and digests of each object: up to
//     16 MiB in memory, and the rest in a temporary file without a name, in partitions of successive shards of the
//     manifest. encodedentries.go sorts those of a partition, and decodes only what a shard needs.
//  8. An output receives the objects, in internal/output: folder.go (one file each; casefold.go first checks that no two names
//     collide), tarfile.go (each worker formats its piece of the stream; tarentry has the headers), or nothing,
//     when the new site is only compared with the old one. index.go renders the manifest, one partition per
//     worker, and the root; they are written last. plan.go says what differs, and keeps a hash of each changed
//     key. For publish --snapshot, site.go renders everything once for the manifest, and an object again when the
//     publisher reads it: render/find.go derives from the key what renders it, and selection.go spares the other
//     objects of its unit. cuts.go remembers where a long table is cut into shards, so that each shard costs its
//     own rows.
//  9. staging replaces the old site with the new one.
//
// # Replace the whole folder in one step
//
// A plain web server may read the output at any time, and the generator may be killed at any time. So a new site is
// built in .{name}.followpress beside the output, and one renameat2(RENAME_EXCHANGE) swaps the two. On file systems
// without that call, two renames do it, and the next run repairs a swap that was cut off between them.
//
// Whether the swap would fail is checked before the work, by a rename that must fail because its target is a folder
// that is not empty: any other error means that the swap would fail too. syncfs runs before the swap and fsync of the
// folder after it, so that a power failure does no more harm than a kill.
//
// There is one way to write a folder: all of its folders are made, and objects that are the same become hard links to
// the files of the old site. Making and removing folders is what such a run costs, but nothing of an old folder is
// believed beyond what the run has looked at: while the site is rendered to be compared, each file of the old one is
// looked at too (internal/output/look.go), and objects whose file is missing or of another size are written. A folder that is
// to change at the cost of what changed is one for publish --snapshot --dest file://, which puts objects one by one.
//
// # Stability
//
// The API may change in any release. The formats of the site are those of package site.
package generator
