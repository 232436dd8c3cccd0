package openapi_test

import (
	"fmt"
	"log"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/templates/openapi"
)

func ExampleDescribe() {
	config, err := site.Config{}.WithDefaults() // usually the configuration in the root of a site
	if err != nil {
		log.Fatal(err)
	}
	body, err := openapi.Describe(config)
	if err != nil {
		log.Fatal(err)
	}
	var description struct {
		OpenAPI string
		Paths   map[string]any
	}
	if err := json.Unmarshal(body, &description); err != nil {
		log.Fatal(err)
	}
	_, ok := description.Paths["/api/v1/lists/{token_id}/details"]
	fmt.Println(description.OpenAPI, ok)
	// Output: 3.1.0 true
}
