{{- define "keygraph.environment" -}}
- { name: AWS_REGION, value: {{ required "region: the table's region" .Values.region | quote }} }
- { name: KEYGRAPH_STORE, value: aws }
- { name: KEYGRAPH_ENV, value: production }
- { name: KEYGRAPH_TABLE, value: {{ required "table: the name of the table" .Values.table | quote }} }
- { name: KEYGRAPH_AUTH, value: {{ required "auth: none, jwt or header" .Values.auth | quote }} }
- { name: KEYGRAPH_METRICS_HOST, value: 0.0.0.0 }
- { name: KEYGRAPH_METRICS_PORT, value: "9464" }
- name: KEYGRAPH_SECRET
  valueFrom: { secretKeyRef: { name: {{ .Values.secret.name | quote }}, key: {{ .Values.secret.key | quote }} } }
{{- range $name, $value := .Values.settings }}
- { name: {{ $name }}, value: {{ $value | quote }} }
{{- end }}
{{- end -}}
