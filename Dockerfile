# Two stages: compile with the project's own tools, then run as an unprivileged user on a read-only root.
FROM node:24-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm install --no-save --omit=optional
COPY . .
RUN node_modules/.bin/tsc -p tsconfig.build.json && cp -r generated/validators/*.js dist/generated/validators/ && npm prune --omit=dev --omit=optional

FROM node:24-slim
WORKDIR /app
COPY --from=build /src/package.json ./
COPY --from=build /src/bin bin
COPY --from=build /src/dist dist
COPY --from=build /src/node_modules node_modules
USER 10101
ENTRYPOINT ["node", "--enable-source-maps", "bin/gwproxy.mjs"]
