package zonekey

import (
	"encoding/json"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/secret"
)

// What the names of cells begin with.
const (
	CellPrefix     = "zonekey " // the key of a zone; the zone's name, a space and the key's ID follow
	TSIGCellPrefix = "tsig "    // a TSIG key; its name follows
)

// Cells of a zone that hold a time have one of these in the place of a key's ID.
const (
	signedID    = "signed"    // Ring.Signed
	unsigningID = "unsigning" // Ring.Unsigning
	withdrawnID = "withdrawn" // Ring.Withdrawn
)

// SealCell calls seal with the secret of a cell that holds a zone key or a TSIG key, and
// with the name of the place that the secret belongs to. If seal changes the secret,
// SealCell returns the new value of the cell; otherwise nil. SealCell ignores cells without
// a secret.
func SealCell(c stele.Cell, seal func(place string, v *secret.Value) (changed bool, err error)) ([]byte, error) {
	var value any
	var kept *secret.Value
	if rest, ok := strings.CutPrefix(c.Name, CellPrefix); ok {
		_, id, _ := strings.Cut(rest, " ")
		if id == signedID || id == unsigningID || id == withdrawnID {
			return nil, nil
		}
		k, err := readKey(id, c.Value)
		if err != nil {
			return nil, err
		}
		value, kept = k, &k.Private
	} else if strings.HasPrefix(c.Name, TSIGCellPrefix) {
		_, k, err := readTSIGKey(c)
		if err != nil {
			return nil, err
		}
		value, kept = k, &k.Secret
	}
	if kept == nil || kept.IsZero() {
		return nil, nil
	}
	changed, err := seal(c.Name, kept)
	if err != nil || !changed {
		return nil, err
	}
	return json.Marshal(value)
}
