package dumpdb

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// downgradeJSON is version.DowngradeInfo (3.5+).
type downgradeJSON struct {
	Target  string `json:"target-version"`
	Enabled bool   `json:"enabled"`
}

// versionForm is the form in which servers write versions: the three numbers of semver, and the suffix of a
// pre-release.
var versionForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

func isVersion(s string) bool { return versionForm.MatchString(s) }

// Cluster reads bucket cluster.
func (db *DB) Cluster() (Cluster, error) {
	var c Cluster
	err := db.eachRow("cluster", c.set)
	return c, err
}

func (c *Cluster) set(row Row) error {
	switch string(row.Key) {
	case "clusterVersion":
		if !isVersion(string(row.Value)) {
			return fmt.Errorf("%q is not a version", row.Value)
		}
		c.Version = string(row.Value)
	case "downgrade":
		var j downgradeJSON
		if err := json.Unmarshal(row.Value, &j); err != nil {
			return err
		}
		c.DowngradeTarget, c.DowngradeEnabled = j.Target, j.Enabled
	default:
		c.Unknown = append(c.Unknown, row.clone())
	}
	return nil
}
