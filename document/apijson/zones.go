package apijson

// ZoneState is what is kept about a zone.
type ZoneState struct {
	Zone   string `json:"zone" example:"paradisec.example."`
	Serial uint32 `json:"serial" doc:"The serial of its SOA record."`
	Base   uint32 `json:"base" doc:"What is added to the number of the last change to make the serial."`
	Last   uint64 `json:"last" doc:"The last change that touched it."`
	Since  uint64 `json:"since" doc:"A secondary that has it from before this change gets it whole."`
	Shut   bool   `json:"shut,omitempty" doc:"It is not transferred, since it is unknown which serial the secondaries have; raise it above that."`
	At     uint64 `json:"at" doc:"The last change of the registry."`
}

// ZoneStatePage is a part of a list of zones.
type ZoneStatePage struct {
	Items []ZoneState `json:"items"`
	Next  string      `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

// CheckedZone is a zone compared with its secondaries.
type CheckedZone struct {
	Zone        string             `json:"zone" example:"paradisec.example."`
	Serial      uint32             `json:"serial" doc:"The serial of its SOA record."`
	Shut        bool               `json:"shut,omitempty" doc:"It is not transferred, since it is not known which serial the secondaries have; raise it above that."`
	Secondaries []CheckedSecondary `json:"secondaries" doc:"What each of its secondaries said."`
}

// CheckedSecondary is what a secondary said.
type CheckedSecondary struct {
	At     string  `json:"at" doc:"Its address, with a port; the network or the key of one without an address." example:"192.0.2.53:53"`
	State  string  `json:"state" enum:"same,behind,ahead,far,refuses,lame,silent,unasked" doc:"Its copy compared with the zone: it has the same serial, a lower one, a higher one (then it takes no changes), or one that is too far away to be compared; it refuses to answer, does not have the zone, or does not answer; or it was not asked."`
	Serial *uint32 `json:"serial,omitempty" doc:"The serial of its copy."`
	Why    string  `json:"why,omitempty" doc:"Why there is no serial."`
}

// ZoneRaise says above which serial a zone is raised.
type ZoneRaise struct {
	Above *uint32 `json:"above,omitempty" doc:"The highest serial that a secondary has. Without it the zone gets the serial after its own." example:"2031050201"`
}

// NewTSIGKey is a key that a caller asks for.
type NewTSIGKey struct {
	Name      string `json:"name" maxLength:"254" doc:"A domain name, which is never given to another key." example:"secondary2.example.org"`
	Algorithm string `json:"algorithm,omitempty" enum:"hmac-sha256,hmac-sha384,hmac-sha512" doc:"hmac-sha256 if nothing is said."`
}
