package backup

import (
	"fmt"
	"strings"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// Freshness bounds the age of a backup. The zero value means no bounds.
type Freshness struct {
	// MaxAge is the maximum age, 0 for any. Modified is when the backup was written and Now the time of the run.
	MaxAge        time.Duration
	Modified, Now time.Time
	// Behind is set if MaxBehind counts: the maximum number of revisions by which the backup may lag behind any source
	// of Against.
	Behind    bool
	MaxBehind int64
}

// judge makes check B11.
func (f *Freshness) judge(r *compare.Report, m *evidence.Member) {
	if f.MaxAge == 0 && !f.Behind {
		return
	}
	var fs []check.Finding
	var open []string
	stale := func(field, observed, expected string) {
		fs = append(fs, check.Finding{Kind: check.KindBackupTooOld, Severity: check.Error,
			Class:       check.ClassBackupStale,
			Members:     []string{m.Label()},
			Title:       m.Label() + ": the backup is " + observed,
			Explanation: "it is older than requested: the job that makes backups may have stopped, or writes elsewhere",
			Evidence: []check.Evidence{{Member: m.Label(), File: m.DB.File, Field: field, Observed: observed,
				Expected: expected}}})
	}
	if f.MaxAge > 0 {
		age := f.Now.Sub(f.Modified)
		switch seconds := age.Seconds(); {
		case f.Modified.IsZero():
			open = append(open, "it is not known when the backup was written")
		case age > f.MaxAge:
			r.Backup.Age = &seconds
			stale("age", age.Round(time.Second).String()+" old", "at most "+f.MaxAge.String())
		default:
			r.Backup.Age = &seconds
		}
	}
	if f.Behind {
		a, _ := r.Backup.Against.(*Against)
		if a == nil || len(a.Compared) == 0 {
			open = append(open, "no source of --against could be compared")
		}
		for i := 0; a != nil && i < len(a.Compared); i++ {
			c := &a.Compared[i]
			switch {
			case c.SameHistory != check.Holds:
				open = append(open, fmt.Sprintf("how far it lags behind %s is not known: %s", c.Source, c.Text()))
			case c.RevisionsBehind > f.MaxBehind:
				stale("revision", fmt.Sprintf("%d %s behind %s", c.RevisionsBehind,
					plural.Form(c.RevisionsBehind, "revision", "revisions"), c.Source),
					fmt.Sprintf("at most %d", f.MaxBehind))
			}
		}
	}
	switch {
	case len(fs) > 0:
		Judge(r, check.B11, check.Violated, "", fs...)
	case len(open) > 0:
		LeaveOpen(r, check.B11, strings.Join(open, "; "))
	default:
		Judge(r, check.B11, check.Holds, "")
	}
}
