package confirm

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/membershippb"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// The members that exist only in the scratch cluster. Their URLs are unreachable: addresses of this range are for
// documentation.
const (
	selfID   = 0xe7cd0001c0f1e001
	absentID = 0xe7cd0001c0f1e002
	markerID = 0xe7cd0001c0f1e003

	selfName  = "etcd-medic-confirm"
	selfURL   = "http://192.0.2.101:2380"
	absentURL = "http://192.0.2.102:2380"
	markerURL = "http://192.0.2.103:2380"
	clientURL = "http://192.0.2.101:2379"
)

// maxBytes bounds the payloads of one part: a starting server keeps all entries of its log in memory.
const maxBytes = 64 << 20

// feed reads the entries after the base once, in order, and returns them in parts.
type feed struct {
	next  func() (replay.Entry, error, bool)
	stop  func()
	minor int
	most  int
	at    uint64
}

// newFeed reads the entries after the base for a server of release 3.minor, at most most at once.
func newFeed(ctx context.Context, p *Plan, minor, most int) *feed {
	f := &feed{minor: minor, most: most, at: p.Base.Index}
	f.next, f.stop = iter.Pull2(replay.Log(ctx, p.logs))
	return f
}

// take returns the next entries up to an index, or fewer if they are large.
func (f *feed) take(to uint64) ([]datadir.Entry, error) {
	var out []datadir.Entry
	var size int
	for f.at < to && len(out) < f.most && size < maxBytes {
		e, err, ok := f.next()
		switch {
		case err != nil:
			return nil, err
		case !ok || e.Index > f.at+1:
			return nil, fmt.Errorf("the log does not give entry %d a second time", f.at+1)
		case e.Index <= f.at:
			continue
		}
		one, err := translate(&e, f.minor)
		if err != nil {
			return nil, err
		}
		f.at = e.Index
		size += len(one.Data)
		out = append(out, one)
	}
	return out, nil
}

// translate turns an entry into one that a server of release 3.minor executes with the same effect on the database.
// Only requests of the v2 API change. Their v2 store is in no database, and 3.6 and 3.7 panic on most of them (3.6.16
// server/etcdserver/apply_v2.go; 3.7 knows none). Since 3.5 there are v3 requests for a member's attributes and the
// cluster version.
func translate(e *replay.Entry, minor int) (datadir.Entry, error) {
	out := datadir.Entry{Type: e.Type, Term: e.Term, Index: e.Index, Data: bytes.Clone(e.Data)}
	r := e.Req
	if r == nil || r.Kind != dumplog.KindV2 || r.V2 == nil {
		return out, nil
	}
	attr, isAttr := r.V2.MemberAttr()
	version, isVersion := r.V2.ClusterVersion()
	switch {
	case !isAttr && !isVersion:
		out.Data = nil
		return out, nil
	case release.AnyOf(minor).Has(release.V2Decoded).Possible():
		return out, nil
	}
	req := &etcdserverpb.InternalRaftRequest{Header: &etcdserverpb.RequestHeader{ID: uint64(r.V2.ID)}}
	if isAttr {
		req.ClusterMemberAttrSet = &membershippb.ClusterMemberAttrSetRequest{Member_ID: uint64(attr.MemberID),
			MemberAttributes: &membershippb.Attributes{Name: attr.Name, ClientUrls: attr.ClientURLs}}
	} else {
		req.ClusterVersionSet = &membershippb.ClusterVersionSetRequest{Ver: version}
	}
	var err error
	out.Data, err = req.Marshal()
	return out, err
}

// marker returns the entry after the last one: its effect shows that everything before it was executed. Conf changes
// are executed under every alarm and for every user.
func marker(after uint64, term uint64) (datadir.Entry, error) {
	m := datadir.Member{ID: markerID, Name: "", PeerURLs: []string{markerURL}}
	context, err := m.JSON()
	return datadir.Entry{Type: dumplog.EntryConfChange, Term: term, Index: after + 1,
		Data: datadir.ConfChange(0, markerID, context)}, err
}
