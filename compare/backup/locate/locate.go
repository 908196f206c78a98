// Package locate finds the backups in the arguments of a user: files, folders with everything in them, archives,
// compressed files, standard input.
//
// It recognizes a backup by its content, whatever its name: k3s and rke2 write names without a suffix, scripts write
// .snapshot, .bak or a date. A file that is named like a backup, or like the backups next to it, but has another
// content is a damaged backup. Skipped files are listed with the reason.
package locate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/objects"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Newest says which backups of a folder are selected.
type Newest string

// The values of Newest.
const (
	All            Newest = ""
	NewestOfFolder Newest = "folder"
	NewestOfSeries Newest = "series"
)

// Options tune Find.
type Options struct {
	// Stdin is what "-" reads.
	Stdin io.Reader
	// Newest drops the older backups of each named folder.
	Newest Newest
	// Scratch is the folder for unpacked files; "" is the system's folder for temporary files.
	Scratch string
	// Shard is the part of folders, archives and object storage for this run.
	Shard Shard
}

// Item is one backup.
type Item struct {
	// Label is unique in the run: the given name, else the shortest unique path.
	Label string
	// Given is the argument that led to it, and Shown its path below that.
	Given, Shown string
	// Modified is when the backup was written, according to the file, the archive or its name; zero if unknown.
	Modified time.Time
	// Chain is set for a full snapshot with deltas.
	Chain *chain.Chain
	// Err says why this cannot be verified: the path is missing, empty or cannot be read.
	Err error
	// FromFolder is true if it was found in a folder or archive and not named itself.
	FromFolder bool
	// Series is the folder and the name without its time stamp.
	Series string

	name    string // given by the user
	path    string // the file to read, or the URL of an endpoint
	object  *object
	entry   int // number of the entry, if the file is an archive
	archive what
	packed  bool
	suffix  string // of a file of a chain
	stat    fs.FileInfo
}

// Packed reports whether the backup is compressed or in an archive.
func (it *Item) Packed() bool { return it.packed }

// Skipped is a file that is not a backup.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Found is the result of Find.
type Found struct {
	Items   []*Item
	Skipped []Skipped
	// Older counts the backups dropped by Options.Newest.
	Older int
	// Elsewhere counts the files of other shards.
	Elsewhere int
	scratch   []string
	stores    []*objects.Store
}

// Close removes scratch and ends connections to object storage.
func (f *Found) Close() error {
	var errs []error
	for _, s := range f.stores {
		errs = append(errs, s.Close())
	}
	for _, d := range f.scratch {
		errs = append(errs, scratch.Remove(d))
	}
	return errors.Join(errs...)
}

// NoBackupError says that a path does not contain a backup.
type NoBackupError struct{ Where, Why string }

// Error returns the message on one line.
func (e *NoBackupError) Error() string { return e.Where + ": no backup here: " + e.Why }

const expected = "a backup file, a folder or archive of backups, - for standard input, s3://, gs:// or azblob:// in " +
	"object storage, or http(s)://HOST:PORT of a running member"

// Find lists the backups in the arguments, in their order and in name order within a folder. For a path that cannot be
// read it returns an Item with an error, so that every argument has a result. It returns an error only if ctx ends.
func Find(ctx context.Context, specs []evidence.Spec, o Options) (*Found, error) {
	found := &Found{}
	for _, s := range specs {
		f := &finder{ctx: ctx, o: o, found: found, given: s, dirs: map[string]bool{}, files: map[string]string{}}
		items := f.spec()
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), found.Close())
		}
		kept := newest(items, o.Newest)
		found.Older += len(items) - len(kept)
		found.Items = append(found.Items, kept...)
	}
	dropRepeated(found)
	label(found.Items)
	return found, nil
}

// finder searches one argument.
type finder struct {
	ctx   context.Context //nolint:containedctx // one call of Find
	o     Options
	found *Found
	given evidence.Spec
	dirs  map[string]bool   // real paths of folders, against loops
	files map[string]string // real paths of files and where they were found
	items []*Item
	// candidates are files that may be damaged backups, depending on the files around them.
	candidates []candidate
	snapshots  map[string][]chain.Snapshot // of chains, by folder
	links      []link
	copies     map[string]string // folders of scratch with copies of objects, by their address
	count      int
	tooMany    bool
}

type candidate struct {
	item *Item
	is   what
	why  string
}

func (f *finder) skip(path, reason string) {
	f.found.Skipped = append(f.found.Skipped, Skipped{path, reason})
}

func (f *finder) failed(shown string, err error) *Item {
	return &Item{Given: f.given.Where, Shown: shown, name: f.given.Name, Err: err}
}

// spec finds the backups of one argument.
func (f *finder) spec() []*Item {
	where := f.given.Where
	switch {
	case where == "-":
		return f.stdin()
	case evidence.IsEndpoint(where):
		return []*Item{{Given: where, Shown: where, name: f.given.Name, path: where, Modified: time.Now()}}
	case objects.IsURL(where):
		return f.objects()
	}
	st, err := os.Stat(where)
	if err != nil {
		what := "nothing at this path"
		if !errors.Is(err, fs.ErrNotExist) {
			what = "a path that cannot be read"
		}
		return []*Item{f.failed(where, &evidence.SourceError{Where: where, Found: what, Expected: expected, Err: err})}
	}
	switch {
	case st.IsDir() && isDataDir(where):
		return []*Item{f.failed(where, &evidence.SourceError{Where: where, Found: "a data dir", Expected: expected,
			Hint: shell.Format("etcd-medic inspect {}", shell.Operand(where)).String()})}
	case st.IsDir():
		return f.folder(where)
	case !st.Mode().IsRegular():
		return []*Item{f.failed(where, &evidence.SourceError{Where: where, Found: "neither a file nor a folder",
			Expected: expected, Err: errors.New("pipe it into etcd-medic verify -")})}
	}
	f.file(where, where, true)
	return f.decideCandidates(where, "nothing in it is a backup")
}

// stdin copies standard input to scratch, since a database is not read sequentially.
func (f *finder) stdin() []*Item {
	if f.o.Stdin == nil {
		return []*Item{f.failed("stdin", &NoBackupError{"-", "nothing is piped in"})}
	}
	dir, err := scratch.Dir(f.o.Scratch, "etcd-medic-")
	if err != nil {
		return []*Item{f.failed("stdin", err)}
	}
	f.found.scratch = append(f.found.scratch, dir)
	path := filepath.Join(dir, "stdin")
	if err := writeFile(f.ctx, path, f.o.Stdin); err != nil {
		return []*Item{f.failed("stdin", err)}
	}
	f.file(path, "stdin", true)
	items := f.decideCandidates("stdin", "nothing in it is a backup")
	for _, it := range items {
		if it.archive == isOther {
			it.Modified = time.Time{}
		}
	}
	return items
}

// folder finds all backups in a folder.
func (f *finder) folder(where string) []*Item {
	f.walk(where, where, 0)
	f.followLinks()
	none := plural.Of(f.count, "file", "files") + ", none of them a backup"
	if f.count == 0 {
		none = "there is no file in it"
	}
	return f.decideCandidates(where, none)
}

// decideCandidates decides about the candidates and returns the items in order.
func (f *finder) decideCandidates(where, none string) []*Item {
	f.chains()
	if f.tooMany {
		f.items = append(f.items, f.failed(where,
			fmt.Errorf("%s: more than %d files; the others were skipped: name fewer of them", where, maxFiles)))
	}
	series := map[string]bool{}
	for _, it := range f.items {
		if it.Err == nil {
			series[it.Series] = true
		}
	}
	for _, c := range f.candidates {
		if series[c.item.Series] {
			f.items = append(f.items, c.item)
		} else {
			f.skip(c.item.Shown, c.why)
		}
	}
	if len(f.items) == 0 && f.found.Elsewhere == 0 {
		return []*Item{f.failed(where, &NoBackupError{where, none})}
	}
	slices.SortStableFunc(f.items, func(a, b *Item) int { return compareText(a.Shown, b.Shown) })
	return f.items
}

// chains combines the full and delta snapshots of each folder.
func (f *finder) chains() {
	byPath := map[string]*Item{}
	for _, it := range f.items {
		byPath[it.path] = it
	}
	for dir, all := range f.snapshots {
		groups, orphans := chain.Group(all)
		for i := range groups {
			c := &groups[i]
			it := byPath[c.Full.Path]
			if it == nil {
				continue
			}
			it.Chain, it.Modified, it.suffix = c, c.Newest(), c.Full.Suffix
			it.Series = filepath.Join(dir, "Full-*")
			it.packed = it.packed || c.Full.Suffix != ""
		}
		if len(groups) == 0 {
			f.items = append(f.items, f.failed(filepath.Join(dir, filepath.Base(orphans[0].Path)),
				&NoBackupError{dir, fmt.Sprintf("%d delta snapshots and no full snapshot that they could be applied to",
					len(orphans))}))
			continue
		}
		for _, s := range orphans {
			f.skip(s.Path, "a delta snapshot from before the first full snapshot here")
		}
	}
}
