// Package evidence opens the sources that a user names, read-only, and returns one Member of facts for each.
//
// Facts do not judge: damage, absence and contradictions are recorded, and package check weighs them. Nothing here
// writes to a source. Archives are unpacked into a separate scratch folder. With the manifest taken at Open, a caller
// verifies at the end that no input has changed.
package evidence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/etcd-medic/etcd-medic/compare/evidence/archive"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// Kind says what a source is.
type Kind string

// The kinds of sources.
const (
	KindDataDir Kind = "data-dir"
	KindDB      Kind = "db"
	KindBackup  Kind = "backup"
	KindWAL     Kind = "wal"
	KindSnap    Kind = "snap"
	// KindEndpoint is a running member whose maintenance snapshot was streamed to scratch.
	KindEndpoint Kind = "endpoint"
)

// Noun returns the kind with its article, for use in a sentence.
func (k Kind) Noun() string {
	switch k {
	case KindDataDir:
		return "a data dir"
	case KindWAL:
		return "a WAL folder"
	case KindSnap:
		return "a raft snapshot file"
	case KindEndpoint:
		return "the snapshot of a running member"
	}
	return "a " + string(k)
}

// Spec is one source as the user named it: [NAME=]WHERE.
type Spec struct {
	Name  string
	Where string
	// WALDir is a WAL folder outside the data dir (etcd --wal-dir); empty if it is inside.
	WALDir string
	// Backup says that the user means a backup. A file that is empty, cut short or something else is then a damaged
	// backup and not a wrong argument.
	Backup bool
}

// ParseSpec splits [NAME=]WHERE. A "=" after a path separator belongs to the path.
func ParseSpec(s string) (Spec, error) {
	name, where, ok := strings.Cut(s, "=")
	if !ok || strings.ContainsAny(name, `/\`) {
		name, where = "", s
	}
	if where == "" {
		return Spec{}, fmt.Errorf("%q has no path: want [NAME=]PATH", s)
	}
	return Spec{Name: name, Where: where}, nil
}

// SourceError says why a source cannot be used: what was found and what was expected.
type SourceError struct {
	Where    string
	Found    string
	Expected string
	// Hint says what to do instead, "" if nothing is known but the list of sources.
	Hint string
	Err  error
}

// Error returns the message on one line.
func (e *SourceError) Error() string {
	s := fmt.Sprintf("%s: found %s; expected %s", e.Where, e.Found, e.Expected)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the underlying error.
func (e *SourceError) Unwrap() error { return e.Err }

const expectedSource = "a data dir (with member/ in it), a member dir, a wal dir, a bbolt db file, a .snap or " +
	".snap.db file, " +
	"a backup (snapshot save), a .tar/.tar.gz/.tar.zst archive of these, or http(s)://HOST:PORT of a running member"

// layout is the paths of the parts of one source; absent parts are empty.
type layout struct {
	kind             Kind
	root             string
	member           string // the folder that contains wal and snap, "" if there is none
	wal, snap, db    string
	snapFile         string
	missing          []string
	nested           []Spec
	walDirIsExternal bool
}

// detectAs is detect, except that a regular file with spec.Backup is always a backup.
func detectAs(where string, spec Spec) (layout, error) {
	// A mistyped path must not read as a member that lost its log.
	if spec.WALDir != "" && isNoDir(spec.WALDir) {
		return layout{}, &SourceError{Where: where, Found: "no folder for its log at " + strconv.Quote(spec.WALDir),
			Expected: "a folder with WAL segments", Hint: "without --wal-dir the log is looked for in the data dir"}
	}
	if st, err := os.Stat(where); spec.Backup && err == nil && st.Mode().IsRegular() {
		return layout{kind: KindBackup, root: where, db: where}, nil
	}
	l, err := detect(where, spec.WALDir)
	var se *SourceError
	if errors.As(err, &se) && se.Hint == "" && errors.Is(err, fs.ErrNotExist) && spec.Name != "" {
		if _, err := os.Lstat(spec.Name + "=" + where); err == nil {
			se.Hint = "what is before = is taken as a name: write ./ before a path with = in it"
		}
	}
	return l, err
}

// detect finds out what a path is from names and a few bytes. It does not judge content.
func detect(where, walDir string) (layout, error) {
	st, err := os.Stat(where)
	if where == "-" && err != nil {
		return layout{}, &SourceError{Where: where, Found: "standard input", Expected: expectedSource,
			Hint: "only etcd-medic verify - (a backup) and etcd-medic explain - (a server's log) read standard input"}
	}
	if err != nil {
		found := "nothing at this path"
		if !errors.Is(err, fs.ErrNotExist) {
			found = "a path that cannot be read"
		}
		return layout{}, &SourceError{Where: where, Found: found, Expected: expectedSource, Err: err}
	}
	if !st.IsDir() && !st.Mode().IsRegular() {
		return layout{}, &SourceError{Where: where, Found: regular.What(st.Mode()), Expected: expectedSource}
	}
	if !st.IsDir() {
		return detectFile(where, st)
	}
	return detectDir(where, walDir)
}

func detectDir(where, walDir string) (layout, error) {
	entries, err := os.ReadDir(where)
	if err != nil {
		return layout{}, &SourceError{Where: where, Found: "a folder that cannot be listed", Expected: expectedSource,
			Err: err}
	}
	if len(entries) == 0 {
		return layout{}, &SourceError{Where: where, Found: "an empty folder", Expected: expectedSource}
	}
	names := map[string]bool{}
	var segments, snaps int
	for _, e := range entries {
		names[e.Name()] = true
		switch {
		case strings.HasSuffix(e.Name(), ".wal"):
			segments++
		case strings.HasSuffix(e.Name(), ".snap"), strings.HasSuffix(e.Name(), ".snap.db"):
			snaps++
		}
	}
	switch {
	case names["member"] && isDir(filepath.Join(where, "member")):
		return memberLayout(where, filepath.Join(where, "member"), walDir), nil
	case names["wal"] && isDir(filepath.Join(where, "wal")), names["snap"] && isDir(filepath.Join(where, "snap")):
		return memberLayout(where, where, walDir), nil
	case segments > 0:
		return layout{kind: KindWAL, root: where, wal: where}, nil
	case snaps > 0 || names["db"]:
		l := layout{kind: KindSnap, root: where, snap: where}
		if names["db"] {
			l.db, l.kind = filepath.Join(where, "db"), KindDB
		}
		return l, nil
	}
	if nested := nestedDataDirs(where, entries); len(nested) > mostNested {
		return layout{}, tooMany(where, len(nested))
	} else if len(nested) > 0 {
		return layout{root: where, nested: nested}, nil
	}
	return layout{}, &SourceError{Where: where, Found: "a folder of " +
		plural.Of(len(entries), "entry", "entries") + " without etcd data", Expected: expectedSource}
}

// tooMany says that an argument stands for more sources than any cluster has.
func tooMany(where string, n int) *SourceError {
	return &SourceError{Where: where, Found: fmt.Sprintf("%d data dirs and backups", n),
		Expected: fmt.Sprintf("at most %d in one folder or archive", mostNested), Hint: "name those of one cluster"}
}

// nestedDataDirs finds the data dirs in a folder that has one per member, and the backups next to them. If a folder in
// it is not a data dir, the data dirs below it count: node1/etcd, node2/etcd, or var/lib/etcd. Where there are none of
// these, it finds backups in subfolders, or else archives.
func nestedDataDirs(where string, entries []fs.DirEntry) []Spec {
	var out []Spec
	for _, e := range entries {
		p := filepath.Join(where, e.Name())
		switch {
		case e.IsDir() && isDataDir(p):
			out = append(out, Spec{Name: e.Name(), Where: p})
		case e.IsDir():
			below := deeper(p, 1, isDataDirEntry)
			if len(below) == 1 && len(entries) > 1 { // one per member: the folder names it
				below[0].Name = e.Name()
			}
			out = append(out, below...)
		case strings.HasSuffix(e.Name(), ".db"):
			out = append(out, Spec{Where: p})
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, e := range entries { // nothing else is there: backups in subfolders
		if e.IsDir() {
			out = append(out, deeper(filepath.Join(where, e.Name()), 1, isBackupName)...)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, e := range entries {
		if e.Type().IsRegular() && archive.IsArchive(e.Name()) {
			out = append(out, Spec{Where: filepath.Join(where, e.Name())})
		}
	}
	return out
}

func isDataDirEntry(path string, e fs.DirEntry) bool { return e.IsDir() && isDataDir(path) }

func isBackupName(_ string, e fs.DirEntry) bool {
	return !e.IsDir() && strings.HasSuffix(e.Name(), ".db")
}

// isDataDir reports whether a path is a data dir, or the member folder of one, by its content.
func isDataDir(p string) bool {
	return isDir(filepath.Join(p, "member")) || isDir(filepath.Join(p, "wal")) || isDir(filepath.Join(p, "snap"))
}

// mostNested bounds the sources that one argument stands for: each costs some kilobytes of a report, and clusters have
// seven members.
const mostNested = 1000

// deepest and mostEntries bound the search for data dirs: the levels of folders, and the entries of each folder.
const (
	deepest     = 3
	mostEntries = 256
)

// deeper returns the sources below a folder. They have no names yet: the members' own names are better than those of
// folders such as etcd.
func deeper(p string, depth int, isSource func(path string, e fs.DirEntry) bool) (out []Spec) {
	entries, err := os.ReadDir(p)
	if err != nil || len(entries) > mostEntries {
		return nil
	}
	for _, e := range entries {
		sub := filepath.Join(p, e.Name())
		switch {
		case isSource(sub, e):
			out = append(out, Spec{Where: sub})
		case e.IsDir() && depth < deepest-1:
			out = append(out, deeper(sub, depth+1, isSource)...)
		}
	}
	return out
}

func memberLayout(root, member, walDir string) layout {
	l := layout{kind: KindDataDir, root: root, member: member}
	l.wal = filepath.Join(member, "wal")
	if walDir != "" {
		l.wal, l.walDirIsExternal = walDir, true
	}
	if isNoDir(l.wal) {
		l.missing, l.wal = append(l.missing, "member/wal"), ""
	}
	l.snap = filepath.Join(member, "snap")
	if isNoDir(l.snap) {
		l.missing, l.snap = append(l.missing, "member/snap"), ""
		return l
	}
	l.db = filepath.Join(l.snap, "db")
	if _, err := os.Stat(l.db); errors.Is(err, fs.ErrNotExist) {
		l.missing, l.db = append(l.missing, "member/snap/db"), ""
	}
	return l
}

func detectFile(where string, st fs.FileInfo) (layout, error) {
	base := filepath.Base(where)
	switch {
	case st.Size() == 0:
		return layout{}, &SourceError{Where: where,
			Found:    "an empty file (from a save or a copy that failed at the start)",
			Expected: expectedSource}
	case strings.HasSuffix(base, ".snap"):
		return layout{kind: KindSnap, root: where, snapFile: where}, nil
	case strings.HasSuffix(base, ".wal"):
		return layout{}, &SourceError{Where: where, Found: "a single WAL segment",
			Expected: "the wal folder that contained it: a segment depends on earlier ones"}
	}
	head := make([]byte, 8192+32)
	n, err := readHead(where, head)
	if err != nil {
		return layout{}, &SourceError{Where: where, Found: "a file that cannot be read", Expected: expectedSource,
			Err: err}
	}
	if !looksLikeBolt(head[:n]) {
		found, hint := noBolt(head[:n], st.Size())
		return layout{}, &SourceError{Where: where, Found: found, Expected: expectedSource, Hint: hint}
	}
	l := layout{kind: KindDB, root: where, db: where}
	// A server's database has at least two pages; a smaller file is an incomplete save or copy.
	cut := st.Size() < 2*4096 && base != "db"
	if st.Size()%512 == trailerLen || looksLikeSnapshot(head[:n]) || cut {
		l.kind = KindBackup
	}
	return l, nil
}

// noBolt returns what a file is that is not a database, and what to do with it.
func noBolt(head []byte, size int64) (found, hint string) {
	if m := RecogniseMistaken(head); m.What != "" {
		return fmt.Sprintf("%s (%s)", m.What, plural.Size(size)), m.Hint
	}
	return fmt.Sprintf("a file of %s that is neither a bbolt database nor another etcd file", plural.Size(size)), ""
}

// isNoDir reports whether a path is known not to be a folder. A path that this user may not look at can be one: what
// opens it then says why it cannot be read.
func isNoDir(p string) bool {
	st, err := os.Stat(p)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	}
	return !st.IsDir()
}

func isDir(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.IsDir()
}
