package apijson

// HandleSite is the site by which the Handle System knows the servers of a registry.
type HandleSite struct {
	Serial  uint16         `json:"serial" doc:"Its number, which grows when something of it changes."`
	Servers []HandleServer `json:"servers"`
}

// HandleServer is a server of a site.
type HandleServer struct {
	ID         uint32            `json:"id"`
	Address    string            `json:"address" example:"192.0.2.7"`
	Interfaces []HandleInterface `json:"interfaces"`
}

// HandleInterface is where a server answers the Handle protocol.
type HandleInterface struct {
	Protocol string `json:"protocol" enum:"udp,tcp,http,https"`
	Port     uint32 `json:"port" example:"2641"`
	Admin    bool   `json:"admin" doc:"It answers changes too."`
}

// HandleSetup says how a prefix of handles is served.
type HandleSetup struct {
	Addresses    []string `json:"addresses" minItems:"1" maxItems:"100" doc:"The public IP addresses of the servers that answer the Handle protocol from this registry." example:"[\"192.0.2.7\"]"`
	Mirrors      []string `json:"mirrors,omitempty" maxItems:"100" doc:"Those of servers that only answer queries."`
	Port         uint16   `json:"port,omitempty" doc:"Of the protocol over UDP and TCP, as clients reach it; 2641 if nothing is said."`
	HTTPPort     uint16   `json:"httpPort,omitempty" doc:"Of the protocol in HTTP, as clients reach it; without it that is not offered."`
	About        string   `json:"about,omitempty" maxLength:"1000" doc:"A description of the site, for people."`
	Organisation string   `json:"organisation,omitempty" maxLength:"1000" doc:"For the registrar of the prefix."`
	Contact      string   `json:"contact,omitempty" maxLength:"1000" doc:"The name of the person whom the registrar asks."`
	Mail         string   `json:"mail,omitempty" maxLength:"1000" doc:"The mail address of that person."`
	AdminKey     string   `json:"adminKey,omitempty" doc:"The public key of the prefix's administrator, as HS_PUBKEY has it, in base64. A prefix without a record needs one. The private key stays where it was made."`
}

// HandlePrefix is a prefix that was set up.
type HandlePrefix struct {
	Prefix        string `json:"prefix" example:"20.500.12345"`
	Record        string `json:"record" doc:"The handle that says where the prefix is served and who administers it." example:"0.NA/20.500.12345"`
	Serial        uint16 `json:"serial" doc:"The number of the site."`
	Administrator string `json:"administrator" example:"300:0.NA/20.500.12345"`
	AdminKey      []byte `json:"adminKey,omitempty" doc:"The public key that the record has, in base64. It is another one than was sent if the prefix had a record already."`
	Bundle        []byte `json:"bundle" doc:"sitebndl.zip, for the registrar of the prefix, in base64."`
}
