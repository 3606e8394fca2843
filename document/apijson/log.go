package apijson

import "time"

// Log is how the transparency log is.
type Log struct {
	Origin     string         `json:"origin,omitempty" example:"names.example.org/.log" doc:"The name of the log; missing if it has no keys yet."`
	Size       uint64         `json:"size" doc:"How many leaves it has."`
	Changes    uint64         `json:"changes" doc:"How many changes the registry has."`
	Behind     uint64         `json:"behind" doc:"How many of them are not in the log yet."`
	Eras       []LogEra       `json:"eras,omitempty" doc:"The generations of the registry that it was written in, the oldest first. A restore begins another."`
	Checkpoint *LogCheckpoint `json:"checkpoint,omitempty" doc:"The last one; missing if there is none yet."`
	Keys       []LogKey       `json:"keys,omitempty" doc:"The keys of the log, the oldest first."`
}

// LogEra is a generation of the registry, as the log knows it.
type LogEra struct {
	Generation string    `json:"generation" doc:"The identifier of the generation."`
	Number     uint64    `json:"number" doc:"1 for the first generation; greater for each that follows." minimum:"1"`
	Size       uint64    `json:"size" doc:"How many leaves it has from the generations before it."`
	Began      time.Time `json:"began" doc:"When it began."`
}

// LogCheckpoint is a signed root of the log.
type LogCheckpoint struct {
	Origin       string           `json:"origin" doc:"The name of the log in its generation."`
	Size         uint64           `json:"size" doc:"How many leaves the root is of."`
	Root         string           `json:"root" doc:"The hash, in base64."`
	At           time.Time        `json:"at" doc:"When it was signed."`
	Note         string           `json:"note" doc:"The signed note."`
	Cosignatures []LogCosignature `json:"cosignatures,omitempty" doc:"The witnesses that have seen it, as the note says; check their signatures with their keys."`
}

// LogCosignature says that a witness has seen a checkpoint.
type LogCosignature struct {
	Witness string    `json:"witness"`
	At      time.Time `json:"at"`
}

// LogKey is a key that signs checkpoints.
type LogKey struct {
	Key     string     `json:"key" doc:"The public key, as a signed note has it (a vkey)."`
	Created time.Time  `json:"created"`
	Retired *time.Time `json:"retired,omitempty" doc:"From when on it does not sign; missing if that is not planned."`
}

// LogKeyChange asks for another key of the log.
type LogKeyChange struct {
	Do      string  `json:"do" enum:"roll,retire" doc:"roll: make a key that signs together with those before it. retire: only the newest key signs from now on."`
	Overlap *uint64 `json:"overlap,omitempty" maximum:"315360000" doc:"For how many seconds the keys before it go on signing; 30 days if it is missing."`
}
