package render

import (
	"encoding/json"
	"io"

	"github.com/etcd-medic/etcd-medic/compare/dossier"
)

// Dossier writes everything that a report shows as one JSON document.
func Dossier(w io.Writer, d *dossier.Dossier) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = w.Write(append(safeFrom(b, 0, true), '\n'))
	return err
}
