package rebuild

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Target is the point to rebuild to; exactly one field is set.
type Target struct {
	// Index is the last raft index to execute.
	Index uint64
	// Revision is the MVCC revision to end at.
	Revision int64
	// Before is a key: the target is the state just before the last entry that changed it.
	Before []byte
	// Time ends before the first entry that was certainly proposed later.
	Time time.Time
	// Last ends at the last entry proven committed, by a source or because a majority of the voters holds it.
	Last bool
}

// ParseTarget reads index=N, revision=R, before=KEY (or "before KEY"), time=RFC3339 (or "time T") or last.
func ParseTarget(s string) (t Target, err error) {
	name, value, ok := strings.Cut(s, "=")
	if n, v, spaced := strings.Cut(s, " "); spaced && (n == "before" || n == "time") {
		name, value, ok = n, v, true
	}
	switch {
	case s == "last":
		t.Last = true
	case !ok || value == "":
		err = fmt.Errorf("%q is not a point of the log", s)
	case name == "index":
		t.Index, err = strconv.ParseUint(value, 10, 64)
	case name == "revision":
		t.Revision, err = strconv.ParseInt(value, 10, 64)
	case name == "before":
		t.Before = []byte(value)
	case name == "time":
		t.Time, err = time.Parse(time.RFC3339Nano, value)
	default:
		err = fmt.Errorf("%q is not a point of the log", s)
	}
	if err == nil && (name == "index" && t.Index == 0 || name == "revision" && t.Revision < 1) {
		err = fmt.Errorf("%s begins with 1", name)
	}
	return t, err
}

// String returns the form that ParseTarget reads.
func (t Target) String() string {
	switch {
	case t.Index > 0:
		return fmt.Sprintf("index=%d", t.Index)
	case t.Revision > 0:
		return fmt.Sprintf("revision=%d", t.Revision)
	case t.Before != nil:
		return fmt.Sprintf("before=%s", t.Before)
	case !t.Time.IsZero():
		return "time=" + t.Time.UTC().Format(time.RFC3339Nano)
	}
	return "last"
}
