package check

import "strings"

// ID names a check: the letter of its family and a number. prose/ID.md describes each check.
type ID string

// OfBackups reports whether the check is about backups.
func (id ID) OfBackups() bool { return strings.HasPrefix(string(id), "B") }

// MendedByStart reports whether a server that starts repairs itself what the check finds, without a loss: an unfinished
// record, a damaged meta page, a damaged .snap file.
func (id ID) MendedByStart() bool { return id == W02 || id == D01 || id == S01 }

// Checks of the log.
const (
	W01 ID = "W01"
	W02 ID = "W02"
	W03 ID = "W03"
	W04 ID = "W04"
	W05 ID = "W05"
	W06 ID = "W06"
)

// Checks of raft snapshot files.
const (
	S01 ID = "S01"
	S02 ID = "S02"
	S04 ID = "S04"
	S05 ID = "S05"
)

// Checks of the database file.
const (
	D01 ID = "D01"
	D02 ID = "D02"
	D03 ID = "D03"
	D04 ID = "D04"
	D05 ID = "D05"
	D06 ID = "D06"
	D07 ID = "D07"
	D08 ID = "D08"
	D09 ID = "D09"
)

// Checks of the consistent index.
const (
	C01 ID = "C01"
	C02 ID = "C02"
	C03 ID = "C03"
	C04 ID = "C04"
	C05 ID = "C05"
)

// Checks of keys and revisions.
const (
	K01 ID = "K01"
	K02 ID = "K02"
	K03 ID = "K03"
	K04 ID = "K04"
	K05 ID = "K05"
	K06 ID = "K06"
	K07 ID = "K07"
	K08 ID = "K08"
	K09 ID = "K09"
	K10 ID = "K10"
	K11 ID = "K11"
	K12 ID = "K12"
	K13 ID = "K13"
)

// Checks of auth.
const (
	A01 ID = "A01"
	A02 ID = "A02"
	A03 ID = "A03"
	A04 ID = "A04"
	A05 ID = "A05"
	A06 ID = "A06"
	A07 ID = "A07"
	A08 ID = "A08"
	A09 ID = "A09"
	A10 ID = "A10"
)

// Checks of leases.
const (
	L01 ID = "L01"
	L02 ID = "L02"
	L03 ID = "L03"
	L04 ID = "L04"
	L05 ID = "L05"
	L06 ID = "L06"
	L07 ID = "L07"
	L08 ID = "L08"
	L09 ID = "L09"
)

// Checks of members and alarms.
const (
	M01 ID = "M01"
	M02 ID = "M02"
	M03 ID = "M03"
	M04 ID = "M04"
	M05 ID = "M05"
	M06 ID = "M06"
	M07 ID = "M07"
	M08 ID = "M08"
	M09 ID = "M09"
	M10 ID = "M10"
	M11 ID = "M11"
	M12 ID = "M12"
	M13 ID = "M13"
	M14 ID = "M14"
	M15 ID = "M15"
	M16 ID = "M16"
	M17 ID = "M17"
	M18 ID = "M18"
)

// Checks of raft.
const (
	R01 ID = "R01"
	R02 ID = "R02"
	R03 ID = "R03"
	R04 ID = "R04"
	R05 ID = "R05"
	R06 ID = "R06"
	R07 ID = "R07"
	R08 ID = "R08"
	R09 ID = "R09"
	R10 ID = "R10"
)

// Checks of backups.
const (
	B01 ID = "B01"
	B02 ID = "B02"
	B03 ID = "B03"
	B04 ID = "B04"
	B05 ID = "B05"
	B06 ID = "B06"
	B07 ID = "B07"
	B08 ID = "B08"
	B09 ID = "B09"
	B10 ID = "B10"
	B11 ID = "B11"
	B12 ID = "B12"
)

// Checks of sources and their parts.
const (
	X00 ID = "X00" // not a check: a source changed while it was read
	X01 ID = "X01"
	X02 ID = "X02"
	X03 ID = "X03"
	X04 ID = "X04"
	X05 ID = "X05"
	X10 ID = "X10"
)

// Checks of a server's own log output.
const (
	G01 ID = "G01"
)
