package dumpdb

import "encoding/json"

// downgradeJSON is version.DowngradeInfo (3.5+).
type downgradeJSON struct {
	Target  string `json:"target-version"`
	Enabled bool   `json:"enabled"`
}

// Cluster reads bucket cluster.
func (db *DB) Cluster() (Cluster, error) {
	var c Cluster
	err := db.eachRow("cluster", func(row Row) error {
		switch string(row.Key) {
		case "clusterVersion":
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
	})
	return c, err
}
