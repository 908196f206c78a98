package render

import (
	"time"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// NearTime supplies the high bits of the time in a request ID, which has 40 bits of milliseconds. They repeat every
// 34.8 years, and etcd 3.x exists since 2016.
var NearTime = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

const millis = "2006-01-02T15:04:05.000Z"

// LogHead introduces a listing: the member of the log, how it starts and how far it goes.
type LogHead struct {
	*dumplog.Summary
	// Commit is the highest index known to be committed, from the source and its peers.
	Commit uint64
}

// Kind is "log".
func (LogHead) Kind() string { return "log" }

// Line names owner, start and extent.
func (l LogHead) Line(dst []byte, o Options) []byte {
	return textLine(append(dst, "# log"...), o, l.Fields)
}

// Fields are the owner, the start in one word and in words, the extent, and unusual facts: index gaps after a snapshot
// from the leader, appends that replaced entries, force-new-cluster.
func (l LogHead) Fields(f Fields) {
	if m := l.Metadata; m != nil {
		f.ID("memberID", uint64(m.MemberID))
		f.ID("clusterID", uint64(m.ClusterID))
	}
	f.Str("start", string(l.Start))
	f.Str("startText", startText(l.Start))
	f.Int("segments", int64(len(l.Segments)))
	f.Uint("firstIndex", l.FirstIndex)
	f.Uint("lastIndex", l.LastIndex)
	f.Uint("lastTerm", l.LastTerm)
	f.Uint("commit", l.Commit)
	if len(l.Jumps) > 0 {
		f.List("jumps", len(l.Jumps), func(i int, f Fields) {
			j := &l.Jumps[i]
			f.Uint("fromIndex", j.From)
			f.Uint("toIndex", j.To)
			f.Str("segment", j.Segment)
			f.Int("offset", j.Offset)
		})
	}
	if len(l.Overwrites) > 0 {
		f.List("overwrites", len(l.Overwrites), func(i int, f Fields) {
			w := &l.Overwrites[i]
			f.Uint("fromIndex", w.Index)
			f.Uint("toIndex", w.OldLast)
			f.Uint("oldTerm", w.OldTerm)
			f.Uint("term", w.Term)
			f.Str("segment", w.Segment)
			f.Int("offset", w.Offset)
		})
	}
	if len(l.ForceNewCluster) > 0 {
		f.List("forceNewCluster", len(l.ForceNewCluster), func(i int, f Fields) {
			f.Str("segment", l.ForceNewCluster[i].Segment)
			f.Int("offset", l.ForceNewCluster[i].Offset)
		})
	}
}

func startText(k dumplog.StartKind) string {
	switch k {
	case dumplog.StartBootstrap:
		return "the member was there when the cluster began"
	case dumplog.StartJoin:
		return "the member joined a cluster that was there already"
	case dumplog.StartRestore:
		return "the data dir was made by a restore of a backup"
	case dumplog.StartPurged:
		return "the first segments are gone, as after snapshots: the log does not say how the member came to be"
	}
	return "the first records do not say how the member came to be"
}

// LogPeer is another member's source, given to decide what is committed.
type LogPeer struct {
	Name string
	// Commit is the highest index that the peer proves committed. Agrees is the highest such index at which both logs
	// have the same entry; 0 if there is none.
	Commit, Agrees uint64
}

// Kind is "peer".
func (LogPeer) Kind() string { return "peer" }

// Line shows the peer and its indexes.
func (p LogPeer) Line(dst []byte, o Options) []byte {
	return textLine(append(dst, "# peer"...), o, p.Fields)
}

// Fields are the name and the two indexes.
func (p LogPeer) Fields(f Fields) {
	f.Str("name", p.Name)
	f.Uint("commit", p.Commit)
	f.Uint("agrees", p.Agrees)
}

// LogTimes says when a range of entries was proposed.
type LogTimes struct {
	First, Last uint64
	// After is a lower bound, Before the next later known time, an estimate; zero if unknown.
	After, Before time.Time
	// Source says where the lower bound comes from.
	Source dumplog.TimeSource
}

// Kind is "times".
func (LogTimes) Kind() string { return "times" }

// Line shows the range and its bounds.
func (t LogTimes) Line(dst []byte, o Options) []byte {
	return textLine(append(dst, "times"...), o, t.Fields)
}

// Fields are the range, the bounds and the source.
func (t LogTimes) Fields(f Fields) {
	f.Uint("firstIndex", t.First)
	f.Uint("lastIndex", t.Last)
	bounds(f, t.After, t.Before)
	word(f, "source", string(t.Source))
}

func bounds(f Fields, after, before time.Time) {
	if !after.IsZero() {
		f.Str("after", after.UTC().Format(millis))
	}
	if !before.IsZero() {
		f.Str("before", before.UTC().Format(millis))
	}
}
