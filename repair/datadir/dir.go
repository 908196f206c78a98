package datadir

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Dir is the content of a new data dir except its database.
type Dir struct {
	// MemberID and ClusterID go into the WAL's metadata, the only place from which a server reads them.
	MemberID, ClusterID uint64
	// Term and Index are those of the raft snapshot: everything up to Index is in the database.
	Term, Index uint64
	// HardTerm is the term of the HardState, at least that of the last entry; 0 means that term. A term above every
	// member's makes them ignore messages of an old leader. Vote is the member voted for, 0 for none.
	HardTerm, Vote uint64
	// Commit is the commit index of the HardState, at least Index (0 means Index) and at most the last entry.
	Commit uint64
	// Voters and Learners are the ConfState at Index.
	Voters, Learners []uint64
	// Members are all members with their URLs for the .snap file; Removed are the removed members.
	Members []Member
	Removed []uint64
	// ClusterVersion is "3.5.0" or similar. "" leaves it out, and the members agree on one again.
	ClusterVersion string
	// Entries go into the WAL in index order without gaps. Those up to Index (as written by a restore) come before the
	// snapshot record. The server replays the later ones as far as Commit.
	Entries []Entry
	// Minor is the 3.x minor version of the servers that wrote the source, 0 if unknown. Up to 4 the snapshot record
	// has no ConfState, as those servers write it.
	Minor int
	// V2Store, if set, is the JSON of the v2 store for the .snap file, instead of one made from Members, Removed and
	// ClusterVersion. It is for sources up to 3.5 with v2 keys.
	V2Store []byte
}

// Member is one member of the cluster.
type Member struct {
	ID                   uint64
	Name                 string
	PeerURLs, ClientURLs []string
	IsLearner            bool
}

// Entry is one raft entry for the WAL.
type Entry struct {
	Type        dumplog.EntryType
	Term, Index uint64
	Data        []byte
}

// Result describes what was written.
type Result struct {
	// Path is the new dir or file. It is not in the document, which must not depend on paths.
	Path  string    `json:"-"`
	Dirs  []Written `json:"dirs"`
	Bytes int64     `json:"bytes"`
	// Notes are remarks about the result, each one sentence.
	Notes []string `json:"notes,omitempty"`
}

// Written is one data dir that was written.
type Written struct {
	// Name is the folder's name below Result.Path, "" if Result.Path is the data dir itself.
	Name      string     `json:"name,omitempty"`
	MemberID  dumplog.ID `json:"memberID"`
	ClusterID dumplog.ID `json:"clusterID"`
	Term      uint64     `json:"term"`
	Index     uint64     `json:"index"`
	Entries   int        `json:"entries"`
	Bytes     int64      `json:"bytes"`
}

// DBSource creates the database at path, which does not exist yet. CopyOf returns one.
type DBSource func(ctx context.Context, path string) error

// CopyOf returns a source that copies the database at src and applies edits to the copy.
func CopyOf(src string, edits ...Edit) DBSource {
	return func(ctx context.Context, path string) error { return copyDB(ctx, path, src, nil, edits) }
}

// Write creates the data dir dst, which must not exist: WAL, .snap file and db. It gets its name only when it is
// complete and synced.
func Write(ctx context.Context, dst string, d Dir, db DBSource) (Result, error) {
	p, err := newPartialDir(dst)
	if err != nil {
		return Result{}, err
	}
	defer p.abandon()
	w, err := writeDir(ctx, p.path, d, db)
	if err != nil {
		return Result{}, fmt.Errorf("writing data dir %s: %w", dst, err)
	}
	if err := p.commit(); err != nil {
		return Result{}, err
	}
	return Result{Path: dst, Dirs: []Written{w}, Bytes: w.Bytes}, nil
}

// writeDir fills root, which exists and is empty, and syncs everything but root itself.
func writeDir(ctx context.Context, root string, d Dir, db DBSource) (Written, error) {
	if d.HardTerm == 0 {
		d.HardTerm = d.Term
		if n := len(d.Entries); n > 0 {
			d.HardTerm = max(d.HardTerm, d.Entries[n-1].Term)
		}
	}
	if err := d.check(); err != nil {
		return Written{}, err
	}
	wal, snap := filepath.Join(root, "member", "wal"), filepath.Join(root, "member", "snap")
	if err := mkdirs(filepath.Join(root, "member"), wal, snap); err != nil {
		return Written{}, err
	}
	content, err := snapFile(&d)
	if err != nil {
		return Written{}, err
	}
	name := fmt.Sprintf("%016x-%016x.snap", d.Term, d.Index)
	if err := writeFile(filepath.Join(snap, name), bytesTo(content)); err != nil {
		return Written{}, err
	}
	if err := writeFile(filepath.Join(wal, walName), logTo(&d)); err != nil {
		return Written{}, err
	}
	if err := db(ctx, filepath.Join(snap, "db")); err != nil {
		return Written{}, err
	}
	if err := syncDirs(wal, snap, filepath.Join(root, "member")); err != nil {
		return Written{}, err
	}
	size, err := treeSize(root)
	return Written{MemberID: dumplog.ID(d.MemberID), ClusterID: dumplog.ID(d.ClusterID), Term: d.Term, Index: d.Index,
		Entries: len(d.Entries), Bytes: size}, err
}

const walName = "0000000000000000-0000000000000000.wal"
