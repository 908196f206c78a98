package backup

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/shell"
)

func historyFinding(c *Compared, m *evidence.Member) check.Finding {
	f := check.Finding{Kind: check.KindBackupLacks, Severity: check.Error, Class: check.ClassDataDivergence,
		Members: []string{m.Label(), c.Source},
		Title: fmt.Sprintf("%s and %s hold different records at revision %s", m.Label(), c.Source,
			c.First.revision()),
		Explanation: "a backup and a member of the same cluster have the same records at every revision that both " +
			"have; from here on they are of different histories, or one was altered"}
	switch {
	case c.apart:
		f.Explanation = fmt.Sprintf("none of the members in the backup is a member of %s: its cluster was restored "+
			"from another backup, or is another cluster. Then each of the two holds what was never written to the "+
			"other one, and the backup need not be damaged", c.Source)
	case c.restored:
		f.Explanation = fmt.Sprintf("the log of %s begins with a restore. If the backup is from before it, each of "+
			"the two holds what was never written to the other one; if not, one of them was altered or has lost "+
			"records", c.Source)
	}
	if c.BackupLacks {
		f.Class, f.Severity = check.ClassBackupDamaged, check.Critical
		f.Title = fmt.Sprintf("%s lacks a required record: revision %s, which %s has", m.Label(), c.First.revision(),
			c.Source)
		f.Explanation = fmt.Sprintf("the backup claims revision %d, and everything else in it agrees with %s; a "+
			"restore would lose these writes, which were there when it was taken",
			m.CurrentRevision(), c.Source)
		if c.First.rewritten {
			f.Title = fmt.Sprintf("%s lacks key %q, which %s has had since revision %s", m.Label(), c.First.Key,
				c.Source, c.First.revision())
		}
	}
	f.At.Revision = &c.First.Revision
	for _, e := range []check.Evidence{{Member: m.Label(), File: m.DB.File, Observed: c.First.InBackup,
		Expected: c.First.InSource}, {Member: c.Source, Observed: c.First.InSource, Expected: c.First.InBackup}} {
		e.Bucket, e.Key, e.Field = "key", c.First.Key, "revision "+c.First.revision()
		f.Evidence = append(f.Evidence, e)
	}
	return f
}

// judgeAgainst turns a different history into a finding of B08.
func judgeAgainst(r *compare.Report, a *Against, m *evidence.Member) {
	out := check.Holds
	var reasons []string
	var fs []check.Finding
	for i := range a.Compared {
		c := &a.Compared[i]
		if len(c.Unequal) > 0 {
			out = check.Violated
			fs = append(fs, stateFinding(c, m))
		}
		switch c.SameHistory {
		case check.Violated:
			out = check.Violated
			fs = append(fs, historyFinding(c, m))
		case check.Holds:
		default:
			reasons = append(reasons, c.Source+": "+c.Reason)
		}
	}
	if a.unreplayed != "" {
		reasons = append(reasons, a.unreplayed)
	}
	var warnings []check.Finding
	for _, f := range a.contradictions {
		if f.Severity == check.Warning {
			warnings = append(warnings, f)
			continue
		}
		out, fs = check.Violated, append(fs, f)
	}
	if out == check.Holds && (len(reasons) > 0 || len(a.Compared) == 0) {
		out = check.NotChecked
	}
	Judge(r, check.B08, out, strings.Join(reasons, "; "), fs...)
	for i, f := range warnings { // the backup stays good
		f.Check, f.ID = check.B08, fmt.Sprintf("%s-%d", check.B08, len(fs)+i+1)
		r.Findings = append(r.Findings, f)
	}
	if out == check.NotChecked && len(reasons) > 0 && r.Verdict.Health != check.HealthUnknown {
		r.Verdict.Add("; not compared: " + strings.Join(reasons, "; "))
	}
	if out == check.Violated && r.Verdict.Class == check.ClassDataDivergence {
		r.Next = []compare.Next{{Text: "diagnose all members of the cluster: one of them, or the backup, holds " +
			"another history", Command: shell.Format("etcd-medic diagnose <SOURCE...>")}}
	}
}

// stateFinding returns the finding for auth, leases or members that differ at one index.
func stateFinding(c *Compared, m *evidence.Member) check.Finding {
	first := c.Unequal[0]
	f := check.Finding{Kind: check.KindBackupStateDiffers, Severity: check.Error, Class: check.ClassDataDivergence,
		Members: []string{m.Label(), c.Source},
		Title:   fmt.Sprintf("%s and %s differ in bucket %s at the same index", m.Label(), c.Source, first.Bucket),
		Explanation: "there is no entry between them, so auth, leases and members must be equal: one of the two was " +
			"altered, or has missed an entry"}
	for _, u := range c.Unequal {
		f.Evidence = append(f.Evidence, check.Evidence{Member: m.Label(), File: m.DB.File, Bucket: u.Bucket, Key: u.Key,
			Observed: u.InBackup, Expected: u.InSource})
	}
	return f
}
