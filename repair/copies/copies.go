// Package copies makes data dirs that servers can run on from evidence that they must not touch: scratch copies of the sources, how
// their members are started, and what server they need. Sources are opened for reading only.
package copies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/node"
)

// Cluster is what the sources are copies of.
type Cluster struct {
	ClusterID dumplog.ID
	Members   []Member
	// Voters is how many voters raft's newest configuration among the sources has, Present how many of them are here.
	Voters, Present int
	// Peers are all peer URLs that any source knows, those of absent and removed members included.
	Peers []string
	Need  node.Need
}

// Quorum is how many voters a decision takes.
func (c *Cluster) Quorum() int { return c.Voters/2 + 1 }

// Member is one source and how a copy of it is started. Its data dir is set when the copy is made.
type Member struct {
	Source *evidence.Member
	Config node.MemberConfig
}

// Of reads how the members of a set are started. It refuses, with a *node.RefusedError, what can not be run together: other sources than
// data dirs, members of different clusters, the same member twice.
func Of(ctx context.Context, set *evidence.Set) (*Cluster, error) {
	c := &Cluster{}
	seen := map[dumplog.ID]string{}
	var newest *evidence.Member
	for _, m := range set.Members {
		if reason := unfit(m); reason != "" {
			return nil, refuse(m.Label(), reason, "give data dirs; a backup becomes one with etcd-medic restore")
		}
		switch {
		case c.ClusterID == 0:
			c.ClusterID = m.ClusterID
		case c.ClusterID != m.ClusterID:
			return nil, refuse(m.Label(), fmt.Sprintf("it is of cluster %s, the others are of %s", m.ClusterID, c.ClusterID), "give the members of one cluster")
		}
		if other := seen[m.MemberID]; other != "" {
			return nil, refuse(m.Label(), fmt.Sprintf("it is the same member as %s (%s)", other, m.MemberID), "give one copy of each member")
		}
		seen[m.MemberID] = m.Label()
		if newest == nil || m.Commit > newest.Commit {
			newest = m
		}
	}
	if newest == nil {
		return nil, errors.New("no source")
	}
	for _, m := range set.Members {
		one, err := member(m, newest)
		if err != nil {
			return nil, err
		}
		c.Members = append(c.Members, one)
		for _, urls := range m.Membership.PeerURLs {
			c.Peers = append(c.Peers, urls...)
		}
		if newest.Membership.IsVoter(m.MemberID) {
			c.Present++
		}
	}
	c.Voters = len(newest.Membership.Voters)
	slices.Sort(c.Peers)
	c.Peers = slices.Compact(c.Peers)
	var err error
	c.Need, err = NeedOf(ctx, set.Members, func(*evidence.Member) bool { return true })
	return c, err
}

func refuse(what, reason, hint string) error {
	return &node.RefusedError{What: "running " + what, Reason: reason, Hint: hint}
}

// unfit says why no server can run on a copy of a source, "" when one may.
func unfit(m *evidence.Member) string {
	switch {
	case m.Source.Kind != evidence.KindDataDir:
		return fmt.Sprintf("it is a %s, no data dir", m.Source.Kind)
	case m.WAL == nil || m.MemberID == 0:
		return "it has no log, which tells who the member is"
	case m.Source.Parts().DB == "":
		return "it has no database"
	}
	return ""
}

// member builds the flags of a member. Names and URLs are those of the newest member list among the sources, because that is what a
// lagging member is about to learn.
func member(m, newest *evidence.Member) (Member, error) {
	c := node.MemberConfig{}
	for _, from := range []*evidence.Member{newest, m} {
		if c.Name == "" {
			c.Name = from.Membership.Names[m.MemberID]
		}
		if len(c.PeerURLs) == 0 {
			c.PeerURLs = from.Membership.PeerURLs[m.MemberID]
		}
		if from.DB == nil || len(c.ClientURLs) > 0 {
			continue
		}
		if i := slices.IndexFunc(from.DB.Members, func(d dumpdb.Member) bool { return dumplog.ID(d.ID) == m.MemberID }); i >= 0 {
			c.ClientURLs = from.DB.Members[i].ClientURLs
		}
	}
	if c.Name == "" {
		c.Name = m.Label()
	}
	if len(c.PeerURLs) == 0 {
		return Member{}, refuse(m.Label(), fmt.Sprintf("no source tells the peer URLs of member %s", m.MemberID), "")
	}
	return Member{Source: m, Config: c}, nil
}

// NeedOf finds out what server opens the data dirs. Versions count of all members, logs of those that a server is started on.
func NeedOf(ctx context.Context, members []*evidence.Member, started func(*evidence.Member) bool) (node.Need, error) {
	var n node.Need
	for _, m := range members {
		if m.DB != nil {
			raise(&n.Storage, m.DB.Meta.StorageVersion)
			raise(&n.Cluster, m.DB.Cluster.Version)
		}
		if !started(m) || n.V2WritesAfterSnapshot {
			continue
		}
		some, writes, err := v2Tail(ctx, m)
		if err != nil {
			return n, err
		}
		n.V2EntriesAfterSnapshot = n.V2EntriesAfterSnapshot || some
		n.V2WritesAfterSnapshot = writes
	}
	return n, nil
}

func raise(v *node.Version, text string) {
	if got, err := node.ParseVersion(text); err == nil && got.AtLeast(*v) {
		*v = got
	}
}

// v2Tail tells whether the log holds v2 requests behind its newest snapshot, and whether one of them writes something else than a
// member's attributes or the cluster version.
func v2Tail(ctx context.Context, m *evidence.Member) (some, writes bool, err error) {
	if m.WAL == nil || m.WAL.Log == nil || m.WAL.Summary == nil {
		return false, false, nil
	}
	var after uint64
	for _, s := range m.WAL.Summary.Snapshots {
		after = max(after, s.Index)
	}
	var d dumplog.Decoder
	for e, err := range m.WAL.Log.Entries(ctx, m.WAL.Summary) {
		if err != nil {
			return some, writes, ctx.Err() // damage ends what a server reads, too
		}
		if e.Index <= after || e.Overwritten {
			continue
		}
		if r, err := d.Decode(&e); err == nil && r != nil && r.Kind == dumplog.KindV2 && r.V2 != nil {
			some, writes = true, writes || !ofMembership(r.V2)
		}
	}
	return some, writes, nil
}

func ofMembership(r *dumplog.V2Request) bool {
	_, attr := r.MemberAttr()
	return r.Method == "PUT" && (attr || r.Path == "/0/version")
}

// logRoom is what a server sets aside for its log: the segment it writes and the next one.
const logRoom = 128 << 20

// Bytes is how much room the copies take at most: the sources' logs, snapshots and databases, and the logs that the servers write.
func (c *Cluster) Bytes() (n int64, err error) {
	for i := range c.Members {
		p := c.Members[i].Source.Source.Parts()
		for _, dir := range []string{p.WAL, p.Snap} {
			if dir == "" {
				continue
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				return 0, err
			}
			for _, e := range entries {
				if st, err := e.Info(); err == nil && st.Mode().IsRegular() {
					n += st.Size()
				}
			}
		}
		n += logRoom
	}
	return n, nil
}

// Make copies every source to a data dir of its own below dir, which it creates.
func (c *Cluster) Make(ctx context.Context, dir string, progress func(string)) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for i := range c.Members {
		m := &c.Members[i]
		if progress != nil {
			progress("copying " + m.Source.Label())
		}
		m.Config.DataDir = filepath.Join(dir, fmt.Sprintf("%d", i+1))
		if err := DataDir(ctx, m.Source, m.Config.DataDir); err != nil {
			return err
		}
	}
	return nil
}

// DataDir makes a data dir of a source's parts in dst, which must not exist: member/wal and member/snap, wherever the source keeps its WAL.
func DataDir(ctx context.Context, m *evidence.Member, dst string) error {
	if err := os.MkdirAll(filepath.Dir(dst), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dst, 0o700); err != nil {
		return err
	}
	p := m.Source.Parts()
	for name, src := range map[string]string{"wal": p.WAL, "snap": p.Snap} {
		if src == "" {
			continue
		}
		if err := Folder(ctx, src, filepath.Join(dst, "member", name)); err != nil {
			return fmt.Errorf("copying %s: %w", m.Label(), err)
		}
	}
	return nil
}

// Folder copies the files of a folder into a new one, without what a server left unfinished.
func Folder(ctx context.Context, src, dst string) error {
	if err := os.MkdirAll(dst, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(src)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasSuffix(e.Name(), ".tmp") { // left by a server that was ended meanwhile
			continue
		}
		if err := file(ctx, filepath.Join(src, e.Name()), filepath.Join(dst, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// chunk is how much is copied between two looks at the context; a chunk of zeros becomes a hole: WAL segments end in many.
const chunk = 1 << 20

func file(ctx context.Context, src, dst string) (err error) {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buf, zero := make([]byte, chunk), make([]byte, chunk)
	var size int64
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(in, buf)
		if n > 0 && !bytes.Equal(buf[:n], zero[:n]) {
			if _, err := out.WriteAt(buf[:n], size); err != nil {
				return err
			}
		}
		size += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out.Truncate(size)
		}
		if err != nil {
			return err
		}
	}
}
