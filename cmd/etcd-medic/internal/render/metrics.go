package render

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// BackupRun is what a metrics file says about one backup beside its report.
type BackupRun struct {
	Report *compare.Report
	// Took is how long the verification lasted, Modified the modification time of the file; zero when not known.
	Took     time.Duration
	Modified time.Time
}

// metric is one family of samples; value returns false when a backup has no sample of it.
type metric struct {
	name, help string
	value      func(*BackupRun) (float64, bool)
}

// backupMetrics stand in the order they are written. A new one is one line here.
var backupMetrics = []metric{
	{"healthy", "1 when no finding is an error: the backup can be relied on; 0 when it is damaged; absent when it could not be told.", func(b *BackupRun) (float64, bool) {
		h := b.Report.Verdict.Healthy
		return truth(h != nil && *h), h != nil
	}},
	{"size_bytes", "Size of the file.", func(b *BackupRun) (float64, bool) {
		if b.Report.Backup == nil {
			return 0, false
		}
		return float64(b.Report.Backup.Size), true
	}},
	{"modified_timestamp_seconds", "Modification time of the file, seconds since 1970.", func(b *BackupRun) (float64, bool) {
		return float64(b.Modified.UnixMilli()) / 1e3, !b.Modified.IsZero()
	}},
	{"revision", "Current revision of the backup.", func(b *BackupRun) (float64, bool) {
		return dbNumber(b, func(d *evidence.DBFacts) *int64 { return d.CurrentRevision })
	}},
	{"compact_revision", "Compact revision of the backup, -1 when it was never compacted.", func(b *BackupRun) (float64, bool) {
		return dbNumber(b, func(d *evidence.DBFacts) *int64 { return d.CompactRevision })
	}},
	{"keys", "Keys that live in the backup.", func(b *BackupRun) (float64, bool) {
		return dbNumber(b, func(d *evidence.DBFacts) *int64 { return d.Keys })
	}},
	{"findings", "Findings of severity error or critical.", func(b *BackupRun) (float64, bool) {
		n := 0
		for _, f := range b.Report.Findings {
			if f.Severity.Rank() >= check.Error.Rank() {
				n++
			}
		}
		return float64(n), true
	}},
	{"verify_seconds", "How long the verification took.", func(b *BackupRun) (float64, bool) { return b.Took.Seconds(), true }},
}

// dbNumber reads a number of the database, false when it does not open.
func dbNumber(b *BackupRun, of func(*evidence.DBFacts) *int64) (float64, bool) {
	if len(b.Report.Members) == 0 || b.Report.Members[0].DB == nil {
		return 0, false
	}
	n := of(b.Report.Members[0].DB)
	if n == nil {
		return 0, false
	}
	return float64(*n), true
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// BackupMetrics writes the reports in the text format of Prometheus, for the textfile collector of node_exporter.
func BackupMetrics(w io.Writer, runs []BackupRun, now time.Time) error {
	out := bufio.NewWriter(w)
	put := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
	const prefix = "etcd_medic_backup_"
	head := func(name, help string) { put("# HELP %s%s %s\n# TYPE %s%s gauge\n", prefix, name, help, prefix, name) }
	for _, m := range backupMetrics {
		head(m.name, m.help)
		for i := range runs {
			if v, ok := m.value(&runs[i]); ok {
				put("%s%s{backup=%s} %s\n", prefix, m.name, label(&runs[i]), number(v))
			}
		}
	}
	head("class", "1 for the class of the verdict.")
	for i := range runs {
		put("%sclass{backup=%s,class=%s} 1\n", prefix, label(&runs[i]), labelText(runs[i].Report.Verdict.Class))
	}
	head("layer", "Verdict of each layer: 1 holds, 0 violated, -1 not checked.")
	for i := range runs {
		if b := runs[i].Report.Backup; b != nil {
			for _, l := range b.Layers {
				put("%slayer{backup=%s,layer=%s} %s\n", prefix, label(&runs[i]), labelText(l.Name), number(layerValue(l.Outcome)))
			}
		}
	}
	againstMetrics(runs, head, put)
	drillMetrics(runs, head, put)
	head("last_run_timestamp_seconds", "When the backups were verified, seconds since 1970.")
	put("%slast_run_timestamp_seconds %s\n", prefix, number(float64(now.UnixMilli())/1e3))
	return out.Flush()
}

// againstMetrics say how far each backup lags behind the sources it was held against.
func againstMetrics(runs []BackupRun, head func(name, help string), put func(string, ...any)) {
	each := func(name, help string, value func(*backup.Compared) float64) {
		started := false
		for i := range runs {
			b := runs[i].Report.Backup
			if b == nil {
				continue
			}
			a, ok := b.Against.(*backup.Against)
			for n := 0; ok && n < len(a.Compared); n++ {
				if !started {
					head(name, help)
					started = true
				}
				put("etcd_medic_backup_%s{backup=%s,source=%s} %s\n", name, label(&runs[i]), labelText(a.Compared[n].Source), number(value(&a.Compared[n])))
			}
		}
	}
	each("revisions_behind", "Revisions that the source is ahead of the backup.", func(c *backup.Compared) float64 { return float64(c.RevisionsBehind) })
	each("keys_behind", "Keys that a restore would leave otherwise than the source has them.", func(c *backup.Compared) float64 {
		return float64(c.Missing + c.Differ + c.Extra)
	})
}

// drillMetrics are those of backups of which a drill was held.
func drillMetrics(runs []BackupRun, head func(name, help string), put func(string, ...any)) {
	var held []*BackupRun
	for i := range runs {
		if b := runs[i].Report.Backup; b != nil {
			if d, ok := b.Drill.(*backup.Drill); ok && d.Refused == "" {
				held = append(held, &runs[i])
			}
		}
	}
	if len(held) == 0 {
		return
	}
	head("drill_equal", "1 when a restored server answered what the backup holds.")
	for _, r := range held {
		d := r.Report.Backup.Drill.(*backup.Drill)
		put("etcd_medic_backup_drill_equal{backup=%s} %s\n", label(r), number(truth(d.Equal != nil && *d.Equal)))
	}
	head("drill_seconds", "How long the drill took.")
	for _, r := range held {
		put("etcd_medic_backup_drill_seconds{backup=%s} %s\n", label(r), number(r.Report.Backup.Drill.(*backup.Drill).Seconds))
	}
}

func layerValue(o check.Outcome) float64 {
	switch o {
	case check.Holds:
		return 1
	case check.Violated:
		return 0
	}
	return -1
}

func label(b *BackupRun) string { return labelText(backup.Name(b.Report)) }

// labelText quotes a label value as the format wants it: backslash, quote and line feed are escaped. What a terminal would obey is
// written as an escape before.
func labelText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(clean(strings.ToValidUTF8(s, "?"))) + `"`
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
