package dumplog

// SnapFile is one raft snapshot file (<term>-<index>.snap) and what reading it showed.
type SnapFile struct {
	File string `json:"file"`
	Size int64  `json:"size"`
	// NameTerm and NameIndex are the two numbers of the file name.
	NameTerm  uint64 `json:"nameTerm"`
	NameIndex uint64 `json:"nameIndex"`
	// Term, Index and ConfState are raftpb.SnapshotMetadata.
	Term      uint64    `json:"term"`
	Index     uint64    `json:"index"`
	ConfState ConfState `json:"confState"`
	StoredCRC uint32    `json:"-"`
	// Computed is the CRC-32C of the data.
	ComputedCRC uint32   `json:"-"`
	V2          *V2Store `json:"v2,omitempty"`
	// Damage is nil when CRC, protobuf, JSON and name agree.
	Damage *DamageError `json:"-"`
	// Broken is true for *.snap.broken files, which a server renamed because it could not read them.
	Broken bool `json:"broken,omitempty"`
}

// V2Store is what counts of the v2 store JSON inside a .snap file.
type V2Store struct {
	Members []V2Member `json:"members"`
	Removed []ID       `json:"removed,omitempty"`
	// Version is the cluster version, "" when absent.
	Version string `json:"version,omitempty"`
	// UserKeys are the paths of user content under /1; 3.6 refuses to start with any.
	UserKeys []string `json:"userKeys,omitempty"`
	Bytes    int      `json:"bytes"`
}

// V2Member is one member in the v2 store; Name and ClientURLs are empty until the member started.
type V2Member struct {
	ID         ID       `json:"id"`
	Name       string   `json:"name,omitempty"`
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs,omitempty"`
	IsLearner  bool     `json:"isLearner,omitempty"`
}

// SnapDir is what a snap folder holds beside the db.
type SnapDir struct {
	// Files are the .snap and .snap.broken files, by index then term.
	Files []*SnapFile
	// SnapDBs are <index>.snap.db files: whole databases received from a leader and not installed yet.
	SnapDBs []SnapDB
	// LeftOvers are tmp*, db.tmp* and foreign files.
	LeftOvers []LeftOver
}

// SnapDB is a <index>.snap.db file: a database received from a leader, not yet installed.
type SnapDB struct {
	File  string `json:"file"`
	Index uint64 `json:"index"`
	Size  int64  `json:"size"`
}

// ReadSnapFile reads one .snap file. The error is non-nil only when the file can not be read; damage is in the SnapFile.
func ReadSnapFile(path string) (*SnapFile, error) { return nil, nil }

// ReadSnapDir lists and reads a snap folder.
func ReadSnapDir(dir string) (*SnapDir, error) { return nil, nil }
