package dumpdb

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// badRow returns the damage of a row that does not decode.
func badRow(bucket string, row Row, err error) *DamageError {
	sp := only(row.Key)
	return &DamageError{Place: row.Place, Kind: DamageRow, Bucket: bucket, FirstKey: sp.first, LastKey: sp.end,
		Err: err}
}

func (r Row) clone() Row {
	r.Key, r.Value = append([]byte(nil), r.Key...), append([]byte(nil), r.Value...)
	return r
}

// bigEndian decodes a stored 64-bit number.
func bigEndian(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("the number has %d bytes, not 8", len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}

// MetaBucket reads bucket meta.
func (db *DB) MetaBucket() (MetaBucket, error) {
	var m MetaBucket
	err := db.eachRow("meta", m.set)
	return m, err
}

func (m *MetaBucket) set(row Row) (err error) {
	switch string(row.Key) {
	case "consistent_index":
		m.ConsistentIndex, err = metaNumber(row.Value)
	case "term":
		m.Term, err = metaNumber(row.Value)
	case "confState":
		m.ConfState, err = parseConfState(row.Value)
	case "storageVersion":
		m.StorageVersion = string(row.Value)
	case "scheduledCompactRev":
		m.ScheduledCompact, err = metaRev(row.Value)
	case "finishedCompactRev":
		m.FinishedCompact, err = metaRev(row.Value)
	default:
		m.Unknown = append(m.Unknown, row.clone())
	}
	return err
}

func metaNumber(b []byte) (*uint64, error) {
	n, err := bigEndian(b)
	if err != nil {
		return nil, err
	}
	return &n, nil
}

func metaRev(b []byte) (*Rev, error) {
	r, _, err := parseRevKey(b)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// confStateJSON is raftpb.ConfState as encoding/json writes it. raft 3.7's pointer types write the same names.
type confStateJSON struct {
	Voters         []uint64 `json:"voters"`
	Learners       []uint64 `json:"learners"`
	VotersOutgoing []uint64 `json:"voters_outgoing"`
	LearnersNext   []uint64 `json:"learners_next"`
	AutoLeave      bool     `json:"auto_leave"`
}

func parseConfState(b []byte) (*ConfState, error) {
	var j confStateJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return nil, err
	}
	return &ConfState{ids(j.Voters), ids(j.Learners), ids(j.VotersOutgoing), ids(j.LearnersNext), j.AutoLeave}, nil
}

func ids(in []uint64) []ID {
	var out []ID
	for _, n := range in {
		out = append(out, ID(n))
	}
	return out
}

// CompactRev returns max(scheduled, finished), to which a server resumes at once; -1 if the db was never compacted.
func (m MetaBucket) CompactRev() int64 {
	rev := int64(-1)
	for _, r := range []*Rev{m.ScheduledCompact, m.FinishedCompact} {
		if r != nil {
			rev = max(rev, r.Main)
		}
	}
	return rev
}
