package dnsd

import (
	"encoding/json"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/secret"
)

// SealCell calls seal with the secret of a cell that holds the key of a zone or of a
// secondary, and with the name of the place that the secret belongs to. If seal changes
// the secret, SealCell returns the new value of the cell; otherwise nil. Cells without a
// secret are passed over.
func SealCell(c stele.Cell, seal func(place string, v *secret.Value) (changed bool, err error)) ([]byte, error) {
	var value any
	var kept *secret.Value
	if rest, ok := strings.CutPrefix(c.Name, zoneKeyCells); ok {
		_, id, _ := strings.Cut(rest, " ")
		if id == signedID || id == unsigningID || id == withdrawnID {
			return nil, nil
		}
		k, err := readZoneKey(id, c.Value)
		if err != nil {
			return nil, err
		}
		value, kept = k, &k.Private
	} else if strings.HasPrefix(c.Name, tsigCells) {
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
