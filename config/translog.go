package config

import (
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/transparency"
	"github.com/stele-id/stele/transparency/witness"
)

var (
	logNameKind   = kind{"name", textForm, orNothing(readLogOrigin)}
	witnessesKind = kind{"URL=key", listForm, readWitness}
)

// readLogOrigin reads the name of a log.
func readLogOrigin(_ *Setting, text string) (any, error) {
	if transparency.CheckOrigin(text) != nil {
		return nil, stele.Messagef("config.log-origin", `"{value}" can't be the name of a log; write a URL without its scheme, such as id.example.org/.log`, text)
	}
	return text, nil
}

// readWitness reads a witness.
func readWitness(_ *Setting, text string) (any, error) {
	if _, err := witness.ParseTarget(text); err != nil {
		return nil, stele.Reason(err)
	}
	return text, nil
}
