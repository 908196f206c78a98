package collect

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// mismatchError says that the parts do not belong together. Another attempt may succeed.
type mismatchError struct{ why string }

// Error says which parts do not belong together, and why.
func (u *mismatchError) Error() string { return u.why }

func mismatchf(format string, args ...any) error { return &mismatchError{fmt.Sprintf(format, args...)} }

// parts is the data that prove compares.
type parts struct {
	index, term     uint64
	member, cluster dumplog.ID // of the member that answered; 0: no member was asked
	log             *dumplog.Summary
	snaps           []snapFile
}

// span is the contiguous part of the log around the consistent index.
type span struct{ first, last uint64 }

// prove returns what was proven; the error says why the parts do not belong together.
func (p *parts) prove() (span, []string, error) {
	if p.log.Metadata == nil {
		return span{}, nil, mismatchf("no segment names the member of the log")
	}
	proven := []string{fmt.Sprintf("all segments belong to member %s of cluster %s", p.log.Metadata.MemberID,
		p.log.Metadata.ClusterID)}
	if p.member != 0 {
		if p.member != p.log.Metadata.MemberID || p.cluster != p.log.Metadata.ClusterID {
			return span{}, nil, otherMember("the endpoint", p.member, p.cluster, p.log.Metadata)
		}
		proven = append(proven, "database and log come from the same member")
	}
	if err := p.sequence(); err != nil {
		return span{}, nil, err
	}
	s, err := p.around()
	if err != nil {
		return span{}, nil, err
	}
	proven = append(proven, fmt.Sprintf("the log has every entry from %d to %d, the consistent index is %d", s.first,
		s.last, p.index))
	if t := p.log.TermAt(p.index); t != 0 && p.term != 0 {
		if t != p.term {
			return s, nil, mismatchf("the database has applied entry %d with term %d, but in the log its term is %d",
				p.index,
				p.term, t)
		}
		proven = append(proven, fmt.Sprintf("entry %d has term %d in database and log", p.index, t))
	}
	if b := p.base(s); b != "" {
		proven = append(proven, b)
	}
	return s, proven, nil
}

// otherMember returns the error for an endpoint that leads to another member than that of the data dir.
func otherMember(endpoint string, member, cluster dumplog.ID, own *dumplog.Metadata) error {
	return &refusal.Error{
		Reason: fmt.Sprintf("%s is member %s of cluster %s, but the data dir belongs to member %s of cluster %s",
			endpoint, member, cluster, own.MemberID, own.ClusterID),
		Hint: "name the client URL of the member that runs on this data dir",
	}
}

// sequence checks that no segment is missing. Purging removes segments from the start; a gap means that one was purged
// before it was opened.
func (p *parts) sequence() error {
	segs := p.log.Segments
	for i := 1; i < len(segs); i++ {
		if segs[i].Seq != segs[i-1].Seq+1 {
			return mismatchf("segment %s does not follow %s: some were purged in between", segs[i].Name, segs[i-1].Name)
		}
	}
	return nil
}

// around finds the contiguous entries that reach to the consistent index.
func (p *parts) around() (span, error) {
	var s span
	for _, r := range p.log.Terms {
		if s.last != 0 && r.First == s.last+1 {
			s.last = r.Last
			continue
		}
		if s.last >= p.index && s.last != 0 {
			break
		}
		s = span{r.First, r.Last}
	}
	if s.last < p.index && p.log.Committed(p.index) < p.index {
		return s, mismatchf("the log ends at entry %d, but the database has applied %d", s.last, p.index)
	}
	if s.first > p.index+1 {
		return s, mismatchf("the log begins at entry %d, but the database has applied %d", s.first, p.index)
	}
	for _, j := range p.log.Jumps {
		if j.To > p.index {
			return s, mismatchf("meanwhile the member received a snapshot up to entry %d, but the database has "+
				"applied %d",
				j.To, p.index)
		}
	}
	return s, nil
}

// base returns what a server starts from, "" if there is nothing.
func (p *parts) base(s span) string {
	for i := len(p.snaps) - 1; i >= 0; i-- {
		if f := p.snaps[i].snap; f.Damage == nil && f.Index+1 >= s.first && f.Index <= p.index {
			return fmt.Sprintf("the log continues the snapshot %s", p.snaps[i].name)
		}
	}
	if s.first <= 1 {
		return "the log begins with the first entry"
	}
	return ""
}
