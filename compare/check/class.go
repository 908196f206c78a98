package check

import "encoding/json"

// Class is the kind of state or fault that a verdict names and that a finding supports.
type Class string

// The classes; the table in classes says what each one means.
const (
	ClassHealthy            Class = "healthy"
	ClassLagging            Class = "lagging"
	ClassUncommittedTail    Class = "uncommitted-tail"
	ClassCompactionSkew     Class = "compaction-skew"
	ClassFreshlyRestored    Class = "freshly-restored"
	ClassBackupGood         Class = "backup-good"
	ClassBackupUnverifiable Class = "backup-unverifiable"
	ClassDataDivergence     Class = "data-divergence"
	ClassLatentDivergence   Class = "latent-divergence"
	ClassMemberLostData     Class = "member-lost-data"
	ClassWALDamage          Class = "wal-damage"
	ClassDBDamage           Class = "db-damage"
	ClassSnapshotDamage     Class = "snapshot-damage"
	ClassMembership         Class = "membership"
	ClassAlarm              Class = "alarm"
	ClassForeignCluster     Class = "foreign-cluster"
	ClassTornCopy           Class = "torn-copy"
	ClassBackupDamaged      Class = "backup-damaged"
	ClassBackupStale        Class = "backup-stale"
	ClassInconclusive       Class = "inconclusive"
)

// Health answers whether something is wrong: yes, no, or the evidence does not suffice, which is the zero value.
type Health uint8

// The three answers. The exit code of a diagnosis follows: Unhealthy rests on a finding that is an error (3 unless
// --fail-on says otherwise), HealthUnknown gives 4 where no finding decides.
const (
	HealthUnknown Health = iota
	Healthy
	Unhealthy
)

// MarshalJSON writes true, false, or null where the evidence does not suffice.
func (h Health) MarshalJSON() ([]byte, error) {
	switch h {
	case Healthy:
		return []byte("true"), nil
	case Unhealthy:
		return []byte("false"), nil
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (h *Health) UnmarshalJSON(b []byte) error {
	var healthy *bool
	if err := json.Unmarshal(b, &healthy); err != nil {
		return err
	}
	switch *h = HealthUnknown; {
	case healthy == nil:
	case *healthy:
		*h = Healthy
	default:
		*h = Unhealthy
	}
	return nil
}

// ClassRow says what a class means.
type ClassRow struct {
	Class  Class
	Health Health
	// Meaning is one sentence for docs/JSON.md.
	Meaning string
}

// Classes lists all classes: those of sound sources, of trouble, and of evidence that does not suffice.
func Classes() []ClassRow {
	return []ClassRow{
		{ClassHealthy, Healthy, "no problem found; members differ only as healthy members do"},
		{ClassLagging, Healthy, "members differ only by how far they have applied"},
		{ClassUncommittedTail, Healthy, "logs differ only above the last entry that a source shows to be committed"},
		{ClassCompactionSkew, Healthy, "compaction, defragmentation or page layout differ, content does not"},
		{ClassFreshlyRestored, Healthy, "data dirs written by a restore and not started yet"},
		{ClassBackupGood, Healthy, "every layer of the backup holds"},
		{ClassBackupUnverifiable, Healthy, "the content holds, but no sha256 trailer proves the file"},
		{ClassDataDivergence, Unhealthy, "at one applied index, contents differ"},
		{ClassLatentDivergence, Unhealthy, "contents agree, but a differing control state will make them diverge"},
		{ClassMemberLostData, Unhealthy, "a member lost log or data that it had acknowledged"},
		{ClassWALDamage, Unhealthy, "a log segment is torn, corrupt or missing"},
		{ClassDBDamage, Unhealthy, "a bbolt file is damaged, or its content contradicts itself"},
		{ClassSnapshotDamage, Unhealthy, "a raft snapshot file is damaged or missing"},
		{ClassMembership, Unhealthy, "the copies of the member list disagree, or quorum is lost through membership"},
		{ClassAlarm, Unhealthy, "CORRUPT is raised and nothing else explains the state"},
		{ClassForeignCluster, Unhealthy, "sources belong to different clusters"},
		{ClassTornCopy, Unhealthy, "files of one source come from different moments"},
		{ClassBackupDamaged, Unhealthy, "the file is not what it claims to be"},
		{ClassBackupStale, Unhealthy, "the backup holds, and is older than `--max-age` or `--max-behind` allow"},
		{ClassInconclusive, HealthUnknown, "the evidence does not suffice; `checks` says what is missing"},
	}
}

// Health is what the class says.
func (c Class) Health() Health {
	for _, row := range Classes() {
		if row.Class == c {
			return row.Health
		}
	}
	return HealthUnknown
}
